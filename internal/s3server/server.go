// Package s3server is a server of buckets in this process, for tests.
//
// In go objects; out comes a server that lists and sends them as servers of S3 do, in pages, by version, and for one access key. It
// keeps everything in memory, looks at who signs a request and not at the signature, and must never be reached from other machines.
package s3server

import (
	"crypto/md5" //nolint:gosec // as servers of S3 name versions
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Server has one bucket.
type Server struct {
	// Bucket is its name, and Access the key that may read it; empty for anybody.
	Bucket, Access string
	// Page is how many objects a page of the list has. Default 1,000.
	Page int

	mu       sync.Mutex
	objects  map[string][]byte
	requests []string
	answer   func(w http.ResponseWriter, r *http.Request) bool
}

// New returns a server with an empty bucket.
func New(bucket, access string) *Server {
	return &Server{Bucket: bucket, Access: access, Page: 1000, objects: map[string][]byte{}}
}

// Put makes these the objects of the bucket.
func (s *Server) Put(objects map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.objects)
	for key, content := range objects {
		s.objects[key] = []byte(content)
	}
}

// Answer has f answer before the server does, if it returns true.
func (s *Server) Answer(f func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

// Requests returns what was asked for since the last call: "LIST prefix", or "GET key".
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.requests
	s.requests = nil
	slices.Sort(out)
	return out
}

// ETag returns the version of content.
func ETag(content []byte) string {
	sum := md5.Sum(content) //nolint:gosec // as above
	return hex.EncodeToString(sum[:])
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	s.mu.Lock()
	defer s.mu.Unlock()
	if key == "" {
		s.requests = append(s.requests, strings.TrimSpace("LIST "+r.URL.Query().Get("prefix")))
	} else {
		s.requests = append(s.requests, "GET "+key)
	}
	switch content, found := s.objects[key]; {
	case s.answer != nil && s.answer(w, r):
	case s.Access != "" && !strings.Contains(r.Header.Get("Authorization"), "Credential="+s.Access+"/"):
		Refuse(w, http.StatusForbidden, "AccessDenied")
	case bucket != s.Bucket:
		Refuse(w, http.StatusNotFound, "NoSuchBucket")
	case key == "":
		s.list(w, r.URL.Query())
	case !found:
		Refuse(w, http.StatusNotFound, "NoSuchKey")
	default:
		send(w, r, content)
	}
}

// Refuse answers with a code of S3.
func Refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "%s<Error><Code>%s</Code><Message>CANARY</Message></Error>", xml.Header, code)
}

func send(w http.ResponseWriter, r *http.Request, content []byte) {
	etag := `"` + ETag(content) + `"`
	w.Header().Set("ETag", etag)
	switch {
	case r.Header.Get("If-Match") != "" && r.Header.Get("If-Match") != etag:
		Refuse(w, http.StatusPreconditionFailed, "PreconditionFailed")
	case r.Header.Get("If-None-Match") == etag:
		w.WriteHeader(http.StatusNotModified)
	default:
		_, _ = w.Write(content)
	}
}

type item struct {
	Key, LastModified, ETag string
	Size                    int
}

// list sends one page; its token is how many objects were sent before.
func (s *Server) list(w http.ResponseWriter, query url.Values) {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		if strings.HasPrefix(key, query.Get("prefix")) {
			keys = append(keys, key)
		}
	}
	from, _ := strconv.Atoi(query.Get("continuation-token"))
	to := min(from+s.Page, len(keys))
	out := struct {
		XMLName               xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListBucketResult"`
		EncodingType          string
		IsTruncated           bool
		NextContinuationToken string `xml:",omitempty"`
		Contents              []item
	}{EncodingType: "url", IsTruncated: to < len(keys)}
	if out.IsTruncated {
		out.NextContinuationToken = strconv.Itoa(to)
	}
	for _, key := range keys[min(from, to):to] {
		content := s.objects[key]
		out.Contents = append(out.Contents, item{url.QueryEscape(key), time.Unix(0, 0).UTC().Format(time.RFC3339), `"` + ETag(content) + `"`, len(content)})
	}
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(out)
}
