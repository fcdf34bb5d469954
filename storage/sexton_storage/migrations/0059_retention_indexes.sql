-- serves-from: 0057
-- transaction: none
-- What one workspace no longer keeps is found by its age, whatever others keep. Deliveries and events have such an index.

create index concurrently if not exists transcripts_of_workspace on transcripts (workspace_id, began_at);
create index concurrently if not exists artefacts_of_workspace on artefacts (workspace_id, created_at);
create index concurrently if not exists event_files_of_workspace on event_files (workspace_id, created_at);
