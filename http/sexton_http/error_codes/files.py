"""Files that events bring and runs leave."""

from typing import Final

from sexton_http.error_codes.code import ANSWER, ANSWER_EVENT, EVENT, Code

# fmt: off
ROWS: Final = (
    Code(
        "UZ-FILE-001", 404, "File not found", ANSWER,
        cause="The workspace has no artefact of this id, or it has been deleted.",
        way_out="`sexton files list EVENT` shows the files of an event. Files are kept for the days of `--files-keep`; to have it again, replay the event.",
        detail="the workspace has no file 019346de-6400-7000-8000-000000000019",
    ),
    Code(
        "UZ-FILE-002", 409, "Quota of files used up", ANSWER,
        cause="The workspace keeps as many bytes of files as it may; delete some, or have the operator raise the quota.",
        way_out="Delete files that nobody needs (`sexton files delete`); their room is free within the hour. The operator may raise `--files-quota`, or keep files for fewer days (`--files-keep`).",
        detail="the workspace may keep 10737418240 bytes of files; delete some, or raise --files-quota",
    ),
    Code(
        "UZ-FILE-003", 409, "Too many files", ANSWER,
        cause="The run has left as many files as one may, or the sender as many uploads that became nothing yet.",
        way_out="Leave one archive in place of many files. As a program that uploads: use uploads that you have begun before you begin others; those that nobody uses end after an hour.",
        detail="an attempt may leave 1000 files",
    ),
    Code(
        "UZ-FILE-004", 413, "File too large", ANSWER,
        cause="The file is larger than one may be; the detail says how large that is.",
        way_out="Make it smaller, by compression or in parts. The operator's bound for files of runs is `--max-file`.",
        detail="the file has 2147483649 bytes, 2147483648 may be",
    ),
    Code(
        "UZ-FILE-005", 409, "Part out of place", ANSWER,
        cause="Bytes before this part are missing, or it does not end with a chunk; `received` says where to go on.",
        way_out="Go on at the byte that `received` names. Each part but the last is a whole multiple of 262,144 bytes. The client libraries do this for you.",
        detail="0 bytes have come, and this part begins elsewhere", facts={"received": 0},
    ),
    Code(
        "UZ-FILE-006", 409, "File differs from what was declared", ANSWER,
        cause="The bytes that came have another SHA-256, or the file has not come whole.",
        way_out="Begin the upload again, with the length and SHA-256 of the file as it is now: it may have changed while it was sent.",
        detail="the bytes that came have another SHA-256; begin the upload again",
    ),
    Code(
        "UZ-FILE-007", 409, "File name taken", ANSWER,
        cause="The attempt has left another content under this name; nothing is overwritten.",
        way_out="Give the second file another name. The first one stays as it is.",
        detail="the attempt has left another content as 'report.html'",
    ),
    Code(
        "UZ-FILE-008", 404, "Upload not found", ANSWER,
        cause="The sender has no upload of this id, or it was given up.",
        way_out="Begin the upload again. One that gets no part for an hour is given up, and nobody sees another's uploads.",
        detail="the sender has no upload 019346de-6400-7000-8000-000000000015",
    ),
    Code(
        "UZ-FILE-009", 416, "Range not satisfiable", ANSWER,
        cause="The range begins after the end of the file; Content-Range says how long it is.",
        way_out="Ask for a range within the length that `Content-Range` tells. If you were resuming a download, you have the whole file already.",
        detail="the file has 1048593 bytes",
    ),
    Code(
        "UZ-FILE-010", 500, "Files not kept", EVENT,
        cause="The run did well, but left files that could not be kept; its text says which and why.",
        way_out="The work is done; only files are missing. Read the event's text for which and why (`sexton event show EVENT`), make room or leave fewer files, then replay it if you need them.",
        detail="report.html could not be kept: the workspace may keep 10737418240 bytes of files",
    ),
    Code(
        "UZ-FILE-011", 410, "Snapshot of the workspace lost", ANSWER_EVENT,
        cause="What the run was to start from is not kept any more, or is damaged; reset the agent's workspace to start from an empty folder.",
        way_out="Have the agent start from an empty folder: `sexton workspace-files reset AGENT`. Then `sexton event replay EVENT`. What the folder held has to be made again by the run, such as a clone.",
        detail="the snapshot that event 019346de-6400-7000-8000-000000000025 started from is not kept any more",
    ),
    Code(
        "UZ-FILE-012", 500, "Workspace not kept", EVENT,
        cause="The run did well, but its workspace could not be kept; its text says why.",
        way_out="The work is done; the next run starts from the folder as it was before. Read the event's text for the reason. Let the agent tidy up at its end, or have less kept (`workspace` in `TRIGGER.md`).",
        detail="the workspace could not be kept: it has 4294967297 bytes, and 4294967296 may be",
    ),
    Code(
        "UZ-FILE-013", 503, "Store of files unavailable", ANSWER,
        cause="The store that keeps the file does not answer, refuses, or gives other bytes than it took; the detail says which. Nothing is deleted: try again later.",
        way_out="Try again later: nothing is lost or deleted. As the operator, read the status in `detail`: 403 is about the key's rights, 404 about the bucket, no answer about `--s3-endpoint` or the network.",
        detail="the S3 store answered 403 to GET sexton/019346de-6400-7000-8000-00000000001e: AccessDenied",
    ),
    Code(
        "UZ-FILE-014", 410, "Files of the event lost", ANSWER_EVENT,
        cause="What the event brings is not kept any more, is damaged, or takes more than the run's disk; the detail says which.",
        way_out="Send the message again with its files. Those of an event are kept as long as those of runs (`--files-keep`). If they are too large for the run, give it more disk: `resources.disk` in `TRIGGER.md`.",
        detail="The files that event 019346de-6400-7000-8000-00000000000a brought are not kept any more.",
    ),
)
# fmt: on
