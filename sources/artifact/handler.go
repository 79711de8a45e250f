package artifact

import (
	"net/http"
	"path"
	"strings"
	"time"
)

// Handler serves artifacts below its root, at Stored.Path, to anybody who can
// reach it. It only accepts GET and HEAD.
func (s *Store) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "artifacts are read only", http.StatusMethodNotAllowed)
			return
		}
		digest := algorithm + strings.TrimSuffix(path.Base(r.URL.Path), blobExt)
		name, err := blobPath(digest)
		if err != nil || r.URL.Path != "/"+name || !s.Has(digest) {
			http.Error(w, "no such artifact", http.StatusNotFound)
			return
		}
		f, err := s.root.Open(name)
		if err != nil {
			http.Error(w, "no such artifact", http.StatusNotFound)
			return
		}
		defer f.Close()
		w.Header().Set("Content-Type", "application/gzip")
		w.Header().Set("ETag", `"`+digest+`"`)
		w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
		http.ServeContent(w, r, "", time.Time{}, f)
	})
}
