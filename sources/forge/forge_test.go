package forge_test

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/gitserver"
	"github.com/flotilla-io/flotilla/sources/forge"
)

// canary is the token that must never appear in an error.
const canary = "CANARY-77f0"

var commit = strings.Repeat("ab", 20)

// reach allows connections to the servers of these tests.
var reach = egress.Dialer{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}

// received is a request as the forge received it.
type received struct {
	Method, Path, Authorization string
	Body                        map[string]string
}

// server answers every request with the given code, headers and body.
type server struct {
	*httptest.Server
	got []received
}

func newServer(t *testing.T, code int, header map[string]string, body string) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got := received{Method: r.Method, Path: r.URL.EscapedPath(), Authorization: r.Header.Get("Authorization") + r.Header.Get("PRIVATE-TOKEN")}
		_ = json.Unmarshal(text, &got.Body)
		s.got = append(s.got, got)
		for k, v := range header {
			w.Header().Set(k, v)
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s
}

func poster(t *testing.T, kind, address string) forge.Poster {
	t.Helper()
	p, err := forge.New(forge.Provider{Type: kind, Address: address, Secret: map[string][]byte{"token": []byte(canary + "\n")}}, forge.Options{Egress: reach})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPost(t *testing.T) {
	status := forge.Status{Commit: commit, Context: "Kustomization/Web", State: forge.Failure, Description: "2/3 clusters ready:\n\teu-3 waits", TargetURL: "https://u:p@hub/x"}
	cases := map[string]struct {
		kind, repository string
		status           forge.Status
		want             received
	}{
		"GitHub": {kind: "github", repository: "/org/repo.git", status: status, want: received{
			Method: "POST", Path: "/api/v3/repos/org/repo/statuses/" + commit, Authorization: "Bearer " + canary,
			Body: map[string]string{"state": "failure", "context": "kustomization/web", "description": "2/3 clusters ready: eu-3 waits", "target_url": "https://hub/x"},
		}},
		"Gitea": {kind: "gitea", repository: "/org/repo", status: status, want: received{
			Method: "POST", Path: "/api/v1/repos/org/repo/statuses/" + commit, Authorization: "token " + canary,
			Body: map[string]string{"state": "failure", "context": "kustomization/web", "description": "2/3 clusters ready: eu-3 waits", "target_url": "https://hub/x"},
		}},
		"GitLab, with groups": {kind: "gitlab", repository: "/group/sub/repo/", status: status, want: received{
			Method: "POST", Path: "/api/v4/projects/group%2Fsub%2Frepo/statuses/" + commit, Authorization: canary,
			Body: map[string]string{"state": "failed", "name": "kustomization/web", "description": "2/3 clusters ready: eu-3 waits", "target_url": "https://hub/x"},
		}},
		"a long description is cut at 140 characters": {
			kind: "github", repository: "/org/repo", status: forge.Status{Commit: commit, Context: "x", State: forge.Pending, Description: strings.Repeat("ü", 200), TargetURL: "javascript:alert(1)"},
			want: received{
				Method: "POST", Path: "/api/v3/repos/org/repo/statuses/" + commit, Authorization: "Bearer " + canary,
				Body: map[string]string{"state": "pending", "context": "x", "description": strings.Repeat("ü", 139) + "…"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, http.StatusCreated, nil, "{}")
			if err := poster(t, tc.kind, s.URL+tc.repository).Post(t.Context(), tc.status); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]received{tc.want}, s.got); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPostRefusals(t *testing.T) {
	date := time.Unix(1_800_000_000, 0).UTC().Format(http.TimeFormat)
	cases := map[string]struct {
		kind      string
		code      int
		header    map[string]string
		body      string
		state     forge.State
		want      error
		wantAfter time.Duration
		says      string
	}{
		"a wrong token":                        {kind: "github", code: 401, body: `{"message":"Bad credentials ` + canary + `"}`, want: forge.ErrUnauthorized, says: "HTTP 401 Unauthorized): the token must be valid"},
		"a token that may not write":           {kind: "gitea", code: 403, body: `{"message":"no"}`, want: forge.ErrUnauthorized},
		"a repository that is gone":            {kind: "gitea", code: 404, body: "<html>\n", want: forge.ErrNotFound, says: "HTTP 404 Not Found): check the provider's address"},
		"a commit that is not there":           {kind: "github", code: 422, body: `{"message":"No commit found for SHA: abc"}`, want: forge.ErrNotFound},
		"a status that is not taken":           {kind: "github", code: 422, body: `{"message":"Validation Failed"}`, want: forge.ErrStatus},
		"more statuses than a commit takes":    {kind: "github", code: 422, body: `{"message":"This SHA and context has reached the maximum number of statuses."}`, want: forge.ErrStatus, says: "so many statuses"},
		"a redirect":                           {kind: "github", code: 307, header: map[string]string{"Location": "http://example.com/"}, want: forge.ErrProvider, says: "change the provider's address"},
		"a page in the forge's place":          {kind: "github", code: 200, header: map[string]string{"Content-Type": "text/html"}, body: "<html>log in", want: forge.ErrProvider, says: "is no forge"},
		"nothing but that all is well":         {kind: "gitea", code: 204, want: forge.ErrProvider},
		"a forge that is out of order":         {kind: "github", code: 502, says: "HTTP 502"},
		"too many requests, in seconds":        {kind: "github", code: 429, header: map[string]string{"Retry-After": "30"}, wantAfter: 30 * time.Second},
		"too many requests, without a time":    {kind: "gitea", code: 429, wantAfter: time.Minute},
		"too many requests, by date":           {kind: "github", code: 403, header: map[string]string{"Retry-After": time.Unix(1_800_000_090, 0).UTC().Format(http.TimeFormat), "Date": date}, wantAfter: 90 * time.Second},
		"a budget that is spent":               {kind: "github", code: 403, header: map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1800000600", "Date": date}, wantAfter: 10 * time.Minute},
		"GitLab's budget":                      {kind: "gitlab", code: 429, header: map[string]string{"RateLimit-Remaining": "0", "RateLimit-Reset": "1800000007", "Date": date}, wantAfter: 7 * time.Second},
		"a budget that is spent, in seconds":   {kind: "gitea", code: 429, header: map[string]string{"RateLimit-Reset": "45", "Date": date}, wantAfter: 45 * time.Second},
		"GitHub's other limit":                 {kind: "github", code: 403, body: `{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}`, wantAfter: time.Minute},
		"a wait that no number holds":          {kind: "github", code: 429, header: map[string]string{"Retry-After": "9223372037"}, wantAfter: time.Hour},
		"a wait that is too long":              {kind: "github", code: 429, header: map[string]string{"Retry-After": "999999"}, wantAfter: time.Hour},
		"a wait that is over":                  {kind: "github", code: 429, header: map[string]string{"Retry-After": "0"}, wantAfter: time.Second},
		"GitLab has the state already":         {kind: "gitlab", code: 400, body: `{"message":"Cannot transition status via :enqueue from :pending (Reason(s): Status cannot transition via \"enqueue\")"}`, state: forge.Pending},
		"GitLab has failed already":            {kind: "gitlab", code: 400, body: `{"message":{"state":["Cannot transition status via :drop from :failed"]}}`, state: forge.Failure},
		"GitLab is in another state":           {kind: "gitlab", code: 400, body: `{"message":"Cannot transition status via :enqueue from :success"}`, state: forge.Pending, want: forge.ErrStatus},
		"Bitbucket Data Center says nothing":   {kind: "bitbucketserver", code: 204},
		"a forge that hears of it twice":       {kind: "bitbucketserver", code: 409, body: `{"errors":[]}`, says: "the forge answered HTTP 409 Conflict"},
		"a link that is not taken":             {kind: "bitbucketserver", code: 400, body: `{"errors":[{"message":"url"}]}`, want: forge.ErrStatus, says: "HTTP 400 Bad Request): Bitbucket does not take every link"},
		"Bitbucket has no such commit":         {kind: "bitbucketserver", code: 404, body: `{"errors":[{"message":"Commit 'abab' does not exist"}]}`, want: forge.ErrNotFound},
		"Bitbucket knows no such token":        {kind: "bitbucketserver", code: 401, body: `{"errors":[{"message":"Authentication failed"}]}`, want: forge.ErrUnauthorized},
		"Bitbucket's budget":                   {kind: "bitbucketserver", code: 429, header: map[string]string{"Retry-After": "5"}, wantAfter: 5 * time.Second},
		"Bitbucket is out of order":            {kind: "bitbucketserver", code: 503, says: "HTTP 503 Service Unavailable"},
		"Azure knows no such token":            {kind: "azuredevops", code: 203, header: map[string]string{"Content-Type": "text/html"}, body: "<html>Sign In", want: forge.ErrUnauthorized, says: "HTTP 203 Non-Authoritative Information): the token must be valid"},
		"Azure wants somebody to sign in":      {kind: "azuredevops", code: 302, header: map[string]string{"Location": "http://example.com/_signin"}, body: "<html>Object moved", want: forge.ErrUnauthorized, says: "HTTP 302 Found): the token must be valid"},
		"Azure's token may not write":          {kind: "azuredevops", code: 403, body: `{"message":"TF401027: You need the Git 'GenericContribute' permission"}`, want: forge.ErrUnauthorized},
		"Azure has no such repository":         {kind: "azuredevops", code: 404, body: `{"message":"TF401019: The Git repository does not exist"}`, want: forge.ErrNotFound},
		"Azure takes no such status":           {kind: "azuredevops", code: 400, body: `{"message":"VS403690"}`, want: forge.ErrStatus},
		"Azure moved":                          {kind: "azuredevops", code: 308, header: map[string]string{"Location": "http://example.com/"}, want: forge.ErrProvider, says: "change the provider's address"},
		"Azure's budget":                       {kind: "azuredevops", code: 429, header: map[string]string{"Retry-After": "7", "X-RateLimit-Remaining": "0"}, wantAfter: 7 * time.Second},
		"Azure is out of order":                {kind: "azuredevops", code: 503, header: map[string]string{"Retry-After": "9"}, wantAfter: 9 * time.Second},
		"Azure says nothing":                   {kind: "azuredevops", code: 204, want: forge.ErrProvider, says: "is no forge"},
		"GitHub says what only GitLab may say": {kind: "github", code: 400, body: `{"message":"Cannot transition status via :enqueue from :pending"}`, state: forge.Pending, want: forge.ErrStatus},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, tc.code, tc.header, tc.body)
			if tc.state == "" {
				tc.state = forge.Success
			}
			err := poster(t, tc.kind, s.URL+paths[tc.kind]).Post(t.Context(), forge.Status{Commit: commit, Context: "x", State: tc.state})
			if len(s.got) != 1 {
				t.Errorf("%d requests, want 1", len(s.got))
			}
			wantErr := tc.want != nil || tc.says != "" || tc.wantAfter > 0
			if (err != nil) != wantErr || (tc.want != nil && !errors.Is(err, tc.want)) || (err != nil && !strings.Contains(err.Error(), tc.says)) {
				t.Errorf("error = %v, want %v saying %q", err, tc.want, tc.says)
			}
			var limit *forge.RateLimitError
			if tc.wantAfter > 0 && (!errors.As(err, &limit) || limit.After != tc.wantAfter) {
				t.Errorf("error = %v, want a wait of %s", err, tc.wantAfter)
			}
			if err != nil && strings.Contains(err.Error(), canary) {
				t.Errorf("the token shows in: %v", err)
			}
		})
	}
}

func TestRedirectGetsNoToken(t *testing.T) {
	other := newServer(t, http.StatusCreated, nil, "{}")
	s := newServer(t, http.StatusTemporaryRedirect, map[string]string{"Location": other.URL + "/api/v3/repos/org/repo/statuses/" + commit}, "")
	err := poster(t, "github", s.URL+"/org/repo").Post(t.Context(), forge.Status{Commit: commit, Context: "x", State: forge.Success})
	if err == nil || len(other.got) != 0 {
		t.Errorf("error = %v, %d requests at the other host", err, len(other.got))
	}
}

func TestPostRefusesReservedAddresses(t *testing.T) {
	for _, address := range []string{"http://169.254.169.254/o/r", "http://[fe80::1%25lo]/o/r", "http://0.0.0.0:1/o/r"} {
		err := poster(t, "gitea", address).Post(t.Context(), forge.Status{Commit: commit, Context: "x", State: forge.Success})
		if !errors.Is(err, egress.ErrNotAllowed) {
			t.Errorf("%s: error = %v, want ErrNotAllowed", address, err)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	secret := map[string][]byte{"token": []byte(canary)}
	for name, p := range map[string]forge.Provider{
		"a type without statuses":                {Type: "slack", Address: "https://h/o/r", Secret: secret},
		"no token":                               {Type: "github", Address: "https://h/o/r"},
		"no address":                             {Type: "github", Secret: secret},
		"an address that is not https":           {Type: "github", Address: "ssh://git@h/o/r", Secret: secret},
		"an address without repository":          {Type: "gitlab", Address: "https://u:" + canary + "@h/o", Secret: secret},
		"an address with too much":               {Type: "gitea", Address: "https://h/o/r/tree", Secret: secret},
		"an address that climbs":                 {Type: "gitlab", Address: "https://h/o/../r", Secret: secret},
		"certificates that are none":             {Type: "gitea", Address: "https://h/o/r", Secret: secret, Certificates: map[string][]byte{"ca.crt": []byte(canary)}},
		"Bitbucket Cloud at another host":        {Type: "bitbucket", Address: "https://h/o/r", Secret: secret},
		"Bitbucket Cloud with too much":          {Type: "bitbucket", Address: "https://bitbucket.org/o/r/src", Secret: secret},
		"Bitbucket Cloud over ssh":               {Type: "bitbucket", Address: "ssh://git@bitbucket.org/o/r.git", Secret: secret},
		"Bitbucket Cloud without credentials":    {Type: "bitbucket", Address: "https://bitbucket.org/o/r", Secret: map[string][]byte{"username": []byte(canary)}},
		"Bitbucket Cloud, no password after ':'": {Type: "bitbucket", Address: "https://bitbucket.org/o/r", Secret: map[string][]byte{"token": []byte(canary + ":")}},
		"Bitbucket Cloud, no user before ':'":    {Type: "bitbucket", Address: "https://bitbucket.org/o/r", Secret: map[string][]byte{"token": []byte(":" + canary)}},
		"a user name that nobody can have":       {Type: "bitbucketserver", Address: "https://h/scm/o/r", Secret: map[string][]byte{"username": []byte("a:b"), "password": []byte(canary)}},
		"Data Center without a form":             {Type: "bitbucketserver", Address: "https://h/o/r", Secret: secret},
		"Data Center with too much":              {Type: "bitbucketserver", Address: "https://h/projects/o/repos/r/browse", Secret: secret},
		"Data Center over ssh":                   {Type: "bitbucketserver", Address: "ssh://git@h:7999/o/r.git", Secret: secret},
		"Data Center without credentials":        {Type: "bitbucketserver", Address: "https://h/scm/o/r"},
		"Azure without a project":                {Type: "azuredevops", Address: "https://h/_git/r", Secret: secret},
		"Azure with too much above":              {Type: "azuredevops", Address: "https://dev.azure.com/o/p/q/_git/r", Secret: secret},
		"Azure with too much below":              {Type: "azuredevops", Address: "https://dev.azure.com/o/p/_git/r/commits", Secret: secret},
		"Azure without _git":                     {Type: "azuredevops", Address: "https://dev.azure.com/o/p/r", Secret: secret},
		"Azure with _git twice":                  {Type: "azuredevops", Address: "https://dev.azure.com/o/_git/_git/r", Secret: secret},
		"Azure's server with too much above":     {Type: "azuredevops", Address: "https://h/a/b/c/p/_git/r", Secret: secret},
		"Azure of before with too much above":    {Type: "azuredevops", Address: "https://o.visualstudio.com/c/p/_git/r", Secret: secret},
		"Azure over ssh":                         {Type: "azuredevops", Address: "git@ssh.dev.azure.com:v3/o/p/r", Secret: secret},
		"Azure without a token":                  {Type: "azuredevops", Address: "https://dev.azure.com/o/p/_git/r", Secret: map[string][]byte{"username": []byte("me"), "password": []byte(canary)}},
		"notes by the scp form":                  {Type: "git-notes", Address: "git@h:o/r"},
		"notes over ssh without a key":           {Type: "git-notes", Address: "ssh://git@h/o/r"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := forge.New(p, forge.Options{})
			if !errors.Is(err, forge.ErrProvider) || strings.Contains(err.Error(), canary) {
				t.Errorf("error = %v, want ErrProvider without the secret", err)
			}
		})
	}
}

// TestWhatAnAddressMustBe checks that the error about an address in another form
// names the right form.
func TestWhatAnAddressMustBe(t *testing.T) {
	for kind, want := range map[string]string{
		"github":          "unusable provider: address \"https://***@h/a/b/c\" must name an owner and a repository",
		"bitbucket":       "unusable provider: address \"https://***@h/a/b/c\" must be https://bitbucket.org/<workspace>/<repository>; for Bitbucket Data Center use the type bitbucketserver",
		"bitbucketserver": "unusable provider: address \"https://***@h/a/b/c\" must be https://<host>/scm/<project>/<repository>.git or https://<host>/projects/<project>/repos/<repository>",
		"azuredevops":     "unusable provider: address \"https://***@h/a/b/c\" must be https://dev.azure.com/<organization>/<project>/_git/<repository>, or https://<host>/<collection>/<project>/_git/<repository>",
		"slack":           "unusable provider: type \"slack\" has no commit statuses here; use github, gitlab, gitea, bitbucket, bitbucketserver, azuredevops or git-notes",
	} {
		_, err := forge.New(forge.Provider{Type: kind, Address: "https://u:" + canary + "@h/a/b/c", Secret: map[string][]byte{"token": []byte(canary)}}, forge.Options{})
		if err == nil || err.Error() != want {
			t.Errorf("%s: error = %v\nwant %s", kind, err, want)
		}
	}
}

func TestStatusRefusals(t *testing.T) {
	s := newServer(t, http.StatusCreated, nil, "{}")
	for name, status := range map[string]forge.Status{
		"a short hash":    {Commit: "abc", Context: "x", State: forge.Success},
		"a path":          {Commit: "../../user", Context: "x", State: forge.Success},
		"no context":      {Commit: commit, Context: " \n", State: forge.Success},
		"a strange state": {Commit: commit, Context: "x", State: "green"},
	} {
		if err := poster(t, "github", s.URL+"/o/r").Post(t.Context(), status); !errors.Is(err, forge.ErrStatus) {
			t.Errorf("%s: error = %v, want ErrStatus", name, err)
		}
	}
	if len(s.got) != 0 {
		t.Errorf("%d requests were sent", len(s.got))
	}
}

func TestPostOverTLS(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "{}")
	}))
	defer s.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	for name, certificates := range map[string]map[string][]byte{"trusted": {"ca.crt": ca}, "unknown": nil} {
		p, err := forge.New(forge.Provider{Type: "gitea", Address: s.URL + "/o/r", Secret: map[string][]byte{"token": []byte(canary)}, Certificates: certificates}, forge.Options{Egress: reach})
		if err != nil {
			t.Fatal(err)
		}
		err = p.Post(t.Context(), forge.Status{Commit: commit, Context: "x", State: forge.Success})
		if (err == nil) != (certificates != nil) {
			t.Errorf("%s: error = %v", name, err)
		}
	}
}

func TestPostGitNotes(t *testing.T) {
	root, clone := t.TempDir(), filepath.Join(t.TempDir(), "clone")
	s, err := gitserver.Start(t.Context(), root, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	git := func(dir string, args ...string) string {
		t.Helper()
		out, err := gitserver.Git(t.Context(), dir, args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if err := s.Create(t.Context(), "app"); err != nil {
		t.Fatal(err)
	}
	git(root, "clone", "--quiet", s.URL("app"), clone)
	if err := os.WriteFile(filepath.Join(clone, "a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	git(clone, "add", "-A")
	git(clone, "commit", "--quiet", "-m", "one")
	git(clone, "push", "--quiet", "origin", "HEAD:main")
	p, err := forge.New(forge.Provider{Type: forge.TypeGitNotes, Address: s.URL("app")}, forge.Options{Egress: reach, Clock: clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0))})
	if err != nil {
		t.Fatal(err)
	}
	head := git(clone, "rev-parse", "HEAD")
	for _, state := range []forge.State{forge.Pending, forge.Success} {
		if err := p.Post(t.Context(), forge.Status{Commit: head, Context: "Kustomization/Web", State: state, Description: "3/3 clusters ready", TargetURL: "https://hub/x"}); err != nil {
			t.Fatal(err)
		}
	}
	git(clone, "fetch", "--quiet", "origin", "+refs/notes/*:refs/notes/*")
	if got, want := git(clone, "notes", "--ref=flotilla", "show", head), "kustomization/web: success 3/3 clusters ready https://hub/x"; got != want {
		t.Errorf("note = %q, want %q", got, want)
	}
	if got, want := git(clone, "log", "-1", "--format=%an <%ae> %at", "refs/notes/flotilla"), "Flotilla <flotilla@localhost> 1800000000"; got != want {
		t.Errorf("author = %q, want %q", got, want)
	}
}
