// The page of results. The library and the index are loaded as scripts, which works from a folder as well.
(function () {
  "use strict";
  var MOST = 30;
  var SHOWN_CHARS = 220;

  function load(path, done) {
    var script = document.createElement("script");
    script.src = path;
    script.onload = done;
    document.head.appendChild(script);
  }

  function build(documents) {
    return window.lunr(function () {
      var builder = this;
      builder.tokenizer.separator = /[\s\-_/]+/;
      builder.ref("location");
      builder.field("title", { boost: 10 });
      builder.field("text");
      documents.forEach(function (one) { builder.add(one); });
    });
  }

  function find(index, words) {
    function ask(presence) {
      return index.query(function (query) {
        words.forEach(function (word) {
          query.term(word, { presence: presence, boost: 10, usePipeline: true });
          if (presence === window.lunr.Query.presence.OPTIONAL) {
            query.term(word + "*", { usePipeline: false });
          }
        });
      });
    }
    var all = ask(window.lunr.Query.presence.REQUIRED);
    return all.length ? all : ask(window.lunr.Query.presence.OPTIONAL);
  }

  function extract(text, words) {
    var low = text.toLowerCase();
    var places = words.map(function (word) { return low.indexOf(word); }).filter(function (at) { return at >= 0; });
    var from = Math.max(0, (places.length ? Math.min.apply(null, places) : 0) - 60);
    return (from ? "… " : "") + text.slice(from, from + SHOWN_CHARS) + (text.length > from + SHOWN_CHARS ? " …" : "");
  }

  function show(place, found, pages, words) {
    place.textContent = found.length ? "" : place.getAttribute("data-no-results-text");
    var shown = {};
    // A page and its first heading are two entries of one name.
    found = found.filter(function (result) {
      var name = result.ref.split("#")[0] + " " + pages[result.ref].title;
      var isNew = !shown[name];
      shown[name] = true;
      return isNew;
    });
    found.slice(0, MOST).forEach(function (result) {
      var page = pages[result.ref];
      var article = document.createElement("article");
      var heading = document.createElement("h3");
      var link = document.createElement("a");
      var text = document.createElement("p");
      link.href = result.ref;
      link.textContent = page.title;
      text.textContent = extract(page.text, words);
      heading.appendChild(link);
      article.appendChild(heading);
      article.appendChild(text);
      place.appendChild(article);
    });
  }

  function begin() {
    var field = document.getElementById("mkdocs-search-query");
    var place = document.getElementById("mkdocs-search-results");
    if (!field || !place) { return; }
    load("search/lunr.js", function () {
      load("search/search_index.js", function () {
        var documents = window.searchIndex.docs;
        var pages = {};
        documents.forEach(function (one) {
          one.text = one.text.replace(/¶/g, " ");
          pages[one.location] = one;
        });
        var index = build(documents);
        function search() {
          var words = field.value.toLowerCase().split(/[^\w]+/).filter(Boolean);
          if (words.length) { show(place, find(index, words), pages, words); } else { place.textContent = ""; }
        }
        field.value = new URLSearchParams(window.location.search).get("q") || "";
        field.addEventListener("input", search);
        search();
      });
    });
  }

  document.addEventListener("DOMContentLoaded", begin);
}());
