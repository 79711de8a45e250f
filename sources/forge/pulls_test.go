package forge_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/sources/forge"
)

// hash returns a commit's.
func hash(digit string) string { return strings.Repeat(digit, 40) }

func reviewer(t *testing.T, kind, address string) *forge.Reviewer {
	t.Helper()
	r, err := forge.NewReviewer(forge.Provider{Type: kind, Address: address, Secret: map[string][]byte{"token": []byte(canary)}}, forge.Options{Egress: reach, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestPullRequests checks the requests to each kind of forge, and what is read of their answers, which are shortened from those
// that the forges gave.
func TestPullRequests(t *testing.T) {
	github := func(head, repo string) string {
		return `{"number":7,"state":"open","draft":true,"title":"x","user":{"login":"ann"},"updated_at":"2026-01-02T03:04:05Z","head":{"label":"org:x","ref":"x","sha":"` + head + `","repo":` + repo + `},"base":{"ref":"main","sha":"` + hash("b") + `","repo":{"id":1}},"labels":[{"id":2,"name":"zeta"},{"id":1,"name":"alpha"}]}`
	}
	gitea := `{"id":3,"number":9,"head":{"label":"x","ref":"x","sha":"` + hash("c") + `","repo_id":1,"repo":{"id":1}},"base":{"ref":"main","sha":"` + hash("b") + `","repo":{"id":1}},"merge_base":"` + hash("d") + `","labels":[]}`
	gitlab := `{"iid":4,"state":"opened","author":{"id":1,"username":"ann"},"updated_at":"2026-01-02T03:04:05.678Z","sha":"` + hash("e") + `","source_branch":"x","target_branch":"main","source_project_id":1,"target_project_id":1,"draft":false,"labels":["b","a"]},` +
		`{"iid":5,"state":"opened","sha":"` + hash("f") + `","target_branch":"prod","source_project_id":2,"target_project_id":1,"labels":[]},` +
		`{"iid":6,"state":"opened","sha":null,"target_branch":"main","source_project_id":1,"target_project_id":1}`
	for name, tc := range map[string]struct {
		kind, target, page string
		want               []forge.PullRequest
	}{
		"GitHub, of the repository itself": {"github", "/api/v3/repos/org/repo/pulls?state=open&sort=created&direction=asc&per_page=50&page=1", "[" + github(hash("a"), `{"id":1}`) + "]",
			[]forge.PullRequest{{Number: 7, Head: hash("a"), Ref: "refs/pull/7/head", Base: "main", Draft: true, Labels: []string{"alpha", "zeta"}, Author: "ann", Updated: "2026-01-02T03:04:05Z"}}},
		"GitHub, of a fork, by the type of comments": {"githubpullrequestcomment", "/api/v3/repos/org/repo/pulls?state=open&sort=created&direction=asc&per_page=50&page=1", "[" + github(hash("a"), `{"id":2}`) + "]",
			[]forge.PullRequest{{Number: 7, Head: hash("a"), Ref: "refs/pull/7/head", Base: "main", Draft: true, Fork: true, Labels: []string{"alpha", "zeta"}, Author: "ann", Updated: "2026-01-02T03:04:05Z"}}},
		"GitHub, of a fork that is gone": {"github", "/api/v3/repos/org/repo/pulls?state=open&sort=created&direction=asc&per_page=50&page=1", "[" + github(hash("a"), `null`) + "]",
			[]forge.PullRequest{{Number: 7, Head: hash("a"), Ref: "refs/pull/7/head", Base: "main", Draft: true, Fork: true, Labels: []string{"alpha", "zeta"}, Author: "ann", Updated: "2026-01-02T03:04:05Z"}}},
		"Gitea": {"gitea", "/api/v1/repos/org/repo/pulls?state=open&sort=oldest&limit=20&page=1", "[" + gitea + "]",
			[]forge.PullRequest{{Number: 9, Head: hash("c"), Ref: "refs/pull/9/head", Base: "main"}}},
		"GitLab, one without commits yet among them": {"gitlab", "/api/v4/projects/org%2Frepo/merge_requests?state=opened&order_by=created_at&sort=asc&per_page=20&page=1", "[" + gitlab + "]",
			[]forge.PullRequest{
				{Number: 4, Head: hash("e"), Ref: "refs/merge-requests/4/head", Base: "main", Labels: []string{"a", "b"}, Author: "ann", Updated: "2026-01-02T03:04:05.678Z"},
				{Number: 5, Head: hash("f"), Ref: "refs/merge-requests/5/head", Base: "prod", Fork: true, Labels: []string{}},
			}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, map[string]string{"GET " + tc.target: "200 " + tc.page})
			got, all, err := reviewer(t, tc.kind, s.server.URL+"/org/repo").PullRequests(t.Context())
			if err != nil || !all {
				t.Fatalf("all is %v, error %v", all, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("pull requests (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"GET " + tc.target}, s.got); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMerged checks by which pull request a branch got a commit.
func TestMerged(t *testing.T) {
	const github, gitea, gitlab = "/api/v3/repos/org/repo/commits/%s/pulls?per_page=50", "/api/v1/repos/org/repo/commits/%s/pull", "/api/v4/projects/org%%2Frepo/repository/commits/%s/merge_requests?per_page=50"
	commit := hash("9")
	pull := func(number int, base, mergedAt string) string {
		return fmt.Sprintf(`{"number":%d,"state":"closed","user":{"login":"ann"},"merged_at":%s,"merge_commit_sha":%q,"head":{"sha":%q,"repo":{"id":1}},"base":{"ref":%q,"repo":{"id":1}},"labels":[]}`, number, mergedAt, commit, hash("a"), base)
	}
	merge := func(iid int, state string) string {
		return fmt.Sprintf(`{"iid":%d,"state":%q,"author":{"username":"ann"},"sha":%q,"target_branch":"main","source_project_id":1,"target_project_id":1,"labels":[]}`, iid, state, hash("a"))
	}
	const at = `"2026-01-02T03:04:05Z"`
	for name, tc := range map[string]struct {
		kind, target, answer string
		want                 string
		fails                bool
	}{
		"GitHub: one into this branch":        {"github", github, "200 [" + pull(6, "other", at) + "," + pull(7, "main", at) + "]", "refs/pull/7/head", false},
		"GitHub: open yet":                    {"github", github, "200 [" + pull(7, "main", "null") + "]", "", false},
		"GitHub: pushed":                      {"github", github, "200 []", "", false},
		"GitHub: into another branch alone":   {"github", github, "200 [" + pull(7, "other", at) + "]", "", false},
		"Gitea: merged":                       {"gitea", gitea, "200 " + pull(7, "main", at), "refs/pull/7/head", false},
		"Gitea: pushed":                       {"gitea", gitea, "404 {}", "", false},
		"GitLab: merged, and another one not": {"gitlab", gitlab, "200 [" + merge(6, "opened") + "," + merge(7, "merged") + "]", "refs/merge-requests/7/head", false},
		"GitLab: closed":                      {"gitlab", gitlab, "200 [" + merge(7, "closed") + "]", "", false},
		"a forge that does not say":           {"github", github, "403 {}", "", true},
		"a forge that says something else":    {"gitea", gitea, "200 <html>", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, map[string]string{"GET " + fmt.Sprintf(tc.target, commit): tc.answer})
			got, found, err := reviewer(t, tc.kind, s.server.URL+"/org/repo").Merged(t.Context(), commit, "main")
			if (err != nil) != tc.fails || found != (tc.want != "") || got.Ref != tc.want {
				t.Errorf("%+v, %v, %v after %q; want %q", got, found, err, s.got, tc.want)
			}
			if found && (got.Head != hash("a") || got.Author != "ann" || !got.Merged) {
				t.Errorf("got %+v", got)
			}
		})
	}
	if _, found, err := reviewer(t, "github", "http://127.0.0.1:1/org/repo").Merged(t.Context(), "../secrets", "main"); found || err != nil {
		t.Errorf("what is no commit: %v, %v", found, err)
	}
}

// pages serves pages of pull requests, each of which says that there is one more, up to last.
func pages(t *testing.T, last, each int) *server {
	t.Helper()
	s := &server{}
	base := newServer(t, http.StatusOK, nil, "")
	base.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var page int
		_, _ = fmt.Sscan(r.URL.Query().Get("page"), &page)
		s.got = append(s.got, received{Path: r.URL.Path})
		var list []string
		for i := range each {
			list = append(list, fmt.Sprintf(`{"number":%d,"head":{"sha":"%s","repo":{"id":1}},"base":{"ref":"main","repo":{"id":1}}}`, (page-1)*each+i+1, hash("a")))
		}
		if page < last {
			w.Header().Set("Link", fmt.Sprintf(`<%s?page=%d>; rel="next", <x>; rel="last"`, r.URL.Path, page+1))
		}
		_, _ = w.Write([]byte("[" + strings.Join(list, ",") + "]"))
	})
	s.Server = base.Server
	return s
}

func TestPagesOfPullRequests(t *testing.T) {
	for name, tc := range map[string]struct {
		last, each, want, requests int
		all                        bool
	}{
		"all pages are read":                     {last: 3, each: 20, want: 60, requests: 3, all: true},
		"of very many the first are read":        {last: 9000, each: 300, want: 1000, requests: 4},
		"pages that have nothing new end it":     {last: 9000, each: 0, want: 0, requests: 1, all: true},
		"one page that is not full is all of it": {last: 1, each: 2, want: 2, requests: 1, all: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := pages(t, tc.last, tc.each)
			got, all, err := reviewer(t, "gitea", s.URL+"/org/repo").PullRequests(t.Context())
			if err != nil || all != tc.all || len(got) != tc.want || len(s.got) != tc.requests {
				t.Errorf("%d pull requests in %d requests, all is %v, error %v; want %d in %d, %v", len(got), len(s.got), all, err, tc.want, tc.requests, tc.all)
			}
		})
	}
}

// TestPullRequestsRefused checks that every kind of forge leads to the same errors.
func TestPullRequestsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		code   int
		header map[string]string
		body   string
		want   error
		after  time.Duration
	}{
		"a token that may not read":    {code: 403, body: "{}", want: forge.ErrUnauthorized},
		"a repository that is gone":    {code: 404, body: "{}", want: forge.ErrNotFound},
		"too many requests":            {code: 429, header: map[string]string{"Retry-After": "30"}, body: "{}", after: 30 * time.Second},
		"GitHub's way of too many":     {code: 403, header: map[string]string{"X-RateLimit-Remaining": "0", "Retry-After": "5"}, body: "{}", after: 5 * time.Second},
		"an object in place of a list": {code: 200, body: `{"message":"hello"}`, want: forge.ErrProvider},
		"a page of a login":            {code: 200, body: `<html>`, want: forge.ErrProvider},
		"a list of something else":     {code: 200, body: `["x"]`, want: forge.ErrProvider},
	} {
		for _, kind := range []string{"github", "gitlab", "gitea"} {
			t.Run(name+" at "+kind, func(t *testing.T) {
				s := newServer(t, tc.code, tc.header, tc.body)
				_, _, err := reviewer(t, kind, s.URL+"/org/repo").PullRequests(t.Context())
				var limited *forge.RateLimitError
				switch {
				case tc.after != 0 && (!errors.As(err, &limited) || limited.After != tc.after):
					t.Errorf("error = %v, want a rate limit of %s", err, tc.after)
				case tc.want != nil && !errors.Is(err, tc.want):
					t.Errorf("error = %v, want %v", err, tc.want)
				}
				if err == nil || strings.Contains(err.Error(), canary) || !strings.HasPrefix(err.Error(), "list pull requests of ") {
					t.Errorf("error = %v", err)
				}
			})
		}
	}
}

func TestReviewerOfAnotherType(t *testing.T) {
	_, err := forge.NewReviewer(forge.Provider{Type: "bitbucket", Address: "https://bitbucket.org/a/b"}, forge.Options{})
	if !errors.Is(err, forge.ErrProvider) || forge.Reviews("bitbucket") || !forge.Reviews("giteapullrequestcomment") {
		t.Errorf("error = %v", err)
	}
}

// TestACopiedMarker checks that a comment of somebody else that has a copy of the marker does not keep ours away.
func TestACopiedMarker(t *testing.T) {
	s := newScript(t, map[string]string{
		"GET /api/v1/repos/org/repo/issues/7/comments":   `200 [{"id":5,"body":"` + marker + `"}]`,
		"PATCH /api/v1/repos/org/repo/issues/comments/5": "403 {}",
		"POST /api/v1/repos/org/repo/issues/7/comments":  `201 {"id":42}`,
	})
	at, err := s.comment("giteapullrequestcomment", forge.CommentRef{PullRequest: 7})
	if want := (forge.CommentRef{PullRequest: 7, ID: 42}); err != nil || at != want {
		t.Errorf("comment %v, error %v; want %v", at, err, want)
	}
}

// FuzzPullRequests: whatever a forge answers is an error or a list whose parts are usable.
func FuzzPullRequests(f *testing.F) {
	for _, text := range []string{`[]`, `[{"number":1}]`, `[{"number":-1,"head":null,"base":null}]`, `[{"iid":1,"sha":"` + hash("a") + `","target_branch":"main","labels":null}]`, `[null]`, `{}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, kind := range []string{"github", "gitlab"} {
			s := newServer(t, http.StatusOK, nil, text)
			got, _, err := reviewer(t, kind, s.URL+"/org/repo").PullRequests(context.WithoutCancel(t.Context()))
			for _, pull := range got {
				if err != nil || pull.Number <= 0 || len(pull.Head) < 40 || pull.Base == "" || !strings.HasPrefix(pull.Ref, "refs/") {
					t.Errorf("%+v, %v", pull, err)
				}
			}
			s.Close()
		}
	})
}
