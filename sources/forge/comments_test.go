package forge_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/sources/forge"
)

// marker is the marker of the key "secret" and pull request 7.
const marker = "<!-- flotilla:bfc7a1ae6224076b66bf0f80bc166b86 -->"

// script is a fake forge with scripted answers that records all requests.
type script struct {
	t       *testing.T
	server  *httptest.Server
	mu      sync.Mutex
	got     []string
	answers map[string]string // "METHOD target" to "CODE body"
}

func newScript(t *testing.T, answers map[string]string) *script {
	t.Helper()
	s := &script{t: t, answers: answers}
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		asked := r.Method + " " + r.RequestURI
		s.mu.Lock()
		s.got = append(s.got, strings.TrimSpace(asked+" "+string(text)))
		s.mu.Unlock()
		code, body, _ := strings.Cut(s.answers[asked], " ")
		switch code {
		case "":
			w.WriteHeader(http.StatusTeapot)
		case "404":
			w.WriteHeader(http.StatusNotFound)
		case "403":
			w.WriteHeader(http.StatusForbidden)
		case "204":
			w.WriteHeader(http.StatusNoContent)
		case "201":
			w.WriteHeader(http.StatusCreated)
		}
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.server.Close)
	return s
}

// comment writes a comment on the commit, with at as its known reference.
func (s *script) comment(kind string, at forge.CommentRef) (forge.CommentRef, error) {
	s.t.Helper()
	to, err := forge.NewCommenter(forge.Provider{Type: kind, Address: s.server.URL + "/org/repo", Secret: map[string][]byte{"token": []byte(canary)}}, forge.Options{Egress: reach, Timeout: time.Minute})
	if err != nil {
		s.t.Fatal(err)
	}
	return to.Comment(s.t.Context(), forge.Comment{Commit: commit, Key: "secret", Body: "all is well", At: at})
}

// body is the JSON of the comment in requests.
const body = ` {"body":"all is well\n\u003c!-- flotilla:bfc7a1ae6224076b66bf0f80bc166b86 --\u003e"}`

// TestComments checks the exact requests to each kind of forge if nothing is
// known of the comment.
func TestComments(t *testing.T) {
	github, gitlab := "/api/v3/repos/org/repo", "/api/v4/projects/org%2Frepo"
	pulls := `[{"number":9,"merged_at":"2026-01-02T03:04:05Z","merge_commit_sha":"other"},{"number":7,"merged_at":"2026-01-02T03:04:05Z","merge_commit_sha":"` + commit + `"},{"number":12,"merged_at":null,"merge_commit_sha":"` + commit + `"}]`
	for kind, tc := range map[string]struct {
		answers map[string]string
		want    []string
	}{
		"githubpullrequestcomment": {
			map[string]string{
				"GET " + github + "/commits/" + commit + "/pulls":          pulls,
				"GET " + github + "/issues/7/comments?per_page=100&page=1": "[" + strings.TrimSuffix(strings.Repeat(`{"id":1,"body":"+1"},`, 100), ",") + "]",
				"GET " + github + "/issues/7/comments?per_page=100&page=2": `[{"id":5,"body":"no"}]`,
				"POST " + github + "/issues/7/comments":                    `{"id":42}`,
			},
			[]string{
				"GET " + github + "/commits/" + commit + "/pulls", "GET " + github + "/issues/7/comments?per_page=100&page=1",
				"GET " + github + "/issues/7/comments?per_page=100&page=2", "POST " + github + "/issues/7/comments" + body,
			},
		},
		"giteapullrequestcomment": {
			map[string]string{
				"GET /api/v1/repos/org/repo/commits/" + commit + "/pull": `{"number":7,"merged_at":"2026-01-02T03:04:05Z"}`,
				"GET /api/v1/repos/org/repo/issues/7/comments":           `[]`,
				"POST /api/v1/repos/org/repo/issues/7/comments":          `{"id":42}`,
			},
			[]string{
				"GET /api/v1/repos/org/repo/commits/" + commit + "/pull", "GET /api/v1/repos/org/repo/issues/7/comments",
				"POST /api/v1/repos/org/repo/issues/7/comments" + body,
			},
		},
		"gitlabmergerequestcomment": {
			map[string]string{
				"GET " + gitlab + "/repository/commits/" + commit + "/merge_requests":    `[{"iid":3,"state":"opened","merge_commit_sha":"` + commit + `"},{"iid":7,"state":"merged","squash_commit_sha":"` + commit + `"}]`,
				"GET " + gitlab + "/merge_requests/7/notes?sort=asc&per_page=100&page=1": `[]`,
				"POST " + gitlab + "/merge_requests/7/notes":                             `{"id":42}`,
			},
			[]string{
				"GET " + gitlab + "/repository/commits/" + commit + "/merge_requests",
				"GET " + gitlab + "/merge_requests/7/notes?sort=asc&per_page=100&page=1", "POST " + gitlab + "/merge_requests/7/notes" + body,
			},
		},
	} {
		t.Run(kind, func(t *testing.T) {
			for asked, answer := range tc.answers {
				tc.answers[asked] = "200 " + answer
			}
			s := newScript(t, tc.answers)
			at, err := s.comment(kind, forge.CommentRef{})
			if want := (forge.CommentRef{PullRequest: 7, ID: 42}); err != nil || at != want {
				t.Errorf("it stands at %+v, %v, want %+v", at, err, want)
			}
			if diff := cmp.Diff(tc.want, s.got); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOneComment checks that there is exactly one comment, whatever happened to
// it and whatever is known of it.
func TestOneComment(t *testing.T) {
	const api = "/api/v1/repos/org/repo"
	list, edit, other := "GET "+api+"/issues/7/comments", "PATCH "+api+"/issues/comments/42", "PATCH "+api+"/issues/comments/40"
	pull := "GET " + api + "/commits/" + commit + "/pull"
	known := forge.CommentRef{PullRequest: 7, ID: 42}
	listed := fmt.Sprintf(`200 [{"id":50,"body":"copied: %[1]s"},{"id":40,"body":"all was well\n%[1]s"}]`, marker)
	for name, tc := range map[string]struct {
		at      forge.CommentRef
		answers map[string]string
		want    []string // without bodies
		err     error
		id      int64
	}{
		"it is edited":                    {at: known, answers: map[string]string{edit: `200 {"id":42}`}, want: []string{edit}, id: 42},
		"somebody has deleted it":         {at: known, answers: map[string]string{edit: "404 {}", list: "200 []", "POST " + api + "/issues/7/comments": `201 {"id":60}`}, want: []string{edit, list, "POST " + api + "/issues/7/comments"}, id: 60},
		"where it stands is forgotten":    {answers: map[string]string{pull: `200 {"number":7}`, list: listed, other: `200 {"id":40}`}, want: []string{pull, list, other}, id: 40},
		"it may not be written":           {at: known, answers: map[string]string{edit: "403 {}"}, want: []string{edit}, err: forge.ErrUnauthorized, id: 42},
		"no pull request brought it":      {answers: map[string]string{pull: "404 {}", "GET " + api: "200 {}"}, want: []string{pull, "GET " + api}, err: forge.ErrNoPullRequest},
		"the repository is gone":          {answers: map[string]string{pull: "404 {}", "GET " + api: "404 {}"}, want: []string{pull, "GET " + api}, err: forge.ErrNotFound},
		"what answers is a page":          {answers: map[string]string{pull: "200 <html>"}, want: []string{pull}, err: forge.ErrProvider},
		"what answers is another program": {answers: map[string]string{pull: `200 {"number":7}`, list: `200 {"items":[]}`}, want: []string{pull, list}, err: forge.ErrProvider},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, tc.answers)
			at, err := s.comment("giteapullrequestcomment", tc.at)
			if !errors.Is(err, tc.err) || at.ID != tc.id {
				t.Errorf("it stands at %+v: %v; want %d: %v", at, err, tc.id, tc.err)
			}
			if err != nil && strings.Contains(err.Error(), canary) {
				t.Errorf("the token is shown: %v", err)
			}
			var got []string
			for _, asked := range s.got {
				asked, _, _ = strings.Cut(asked, ` {"body"`)
				got = append(got, asked)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}
