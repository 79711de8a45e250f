package poster

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
)

// pulls is a forge whose pull requests 1 to 9 brought the commits that are written with that digit.
type pulls struct {
	mu     sync.Mutex
	writes []string // "POST 7: body", "PATCH 1: body"
	none   bool     // it knows no pull request
}

func (p *pulls) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var in struct{ Body string }
	_ = json.NewDecoder(r.Body).Decode(&in)
	body, _, _ := strings.Cut(in.Body, "\n<!--")
	path := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/v1/repos/acme/team"), "/")
	switch {
	case r.Method == http.MethodPost:
		p.writes = append(p.writes, "POST "+path[2]+": "+body)
		_, _ = fmt.Fprintf(w, `{"id":%d}`, len(p.writes))
	case r.Method == http.MethodPatch:
		p.writes = append(p.writes, "PATCH "+path[3]+": "+body)
		_, _ = io.WriteString(w, "{}")
	case len(path) > 3 && path[1] == "issues":
		_, _ = io.WriteString(w, "[]")
	case len(path) > 3 && p.none:
		w.WriteHeader(http.StatusNotFound)
	case len(path) > 3:
		_, _ = io.WriteString(w, `{"number":`+path[2][:1]+`}`)
	default:
		_, _ = io.WriteString(w, "{}")
	}
}

// comments has a source's CommitStatus at a commit, with what its comment is to say.
func (w *tenants) comments(to *httptest.Server, generation int64, commit string, state gitopsv1alpha1.CommitState, says string) {
	w.t.Helper()
	w.reports("team", "fleet", generation, commit)
	cs := &gitopsv1alpha1.CommitStatus{}
	w.check(w.hub.Get(w.t.Context(), client.ObjectKey{Namespace: "team", Name: "fleet"}, cs))
	cs.Spec.SourceRef, cs.Spec.State, cs.Spec.Comment, cs.Spec.Repository = &gitopsv1alpha1.SourceReference{Kind: "GitRepository", Name: "fleet"}, state, says, to.URL+"/acme/team"
	cs.UID = "0123"
	w.check(w.hub.Update(w.t.Context(), cs))
}

func (w *tenants) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// commenting has the Provider of the team be one that comments.
func (w *tenants) commenting() {
	w.t.Helper()
	provider := &notificationv1beta3.Provider{}
	w.check(w.hub.Get(w.t.Context(), client.ObjectKey{Namespace: "team", Name: "forge"}, provider))
	provider.Spec.Type = notificationv1beta3.GiteaPullRequestCommentProvider
	w.check(w.hub.Update(w.t.Context(), provider))
}

// TestOneCommentForEachCommit: it is written once, edited as the commit goes on, across a restart too, and ends
// when the next commit comes.
func TestOneCommentForEachCommit(t *testing.T) {
	forge := &pulls{}
	server := httptest.NewServer(forge)
	t.Cleanup(server.Close)
	w := newTenants(t, Options{}, "team")
	w.commenting()
	posted := func(commit string, seen int64) outcome {
		return outcome{Synced: "True", Reason: "Posted", Message: "the forge knows", Posted: commit, Seen: seen, Writes: 1}
	}
	w.comments(server, 1, "1", gitopsv1alpha1.CommitPending, "1/3 clusters")
	w.expect("the first", w.runs("team", "fleet"), posted("1", 1))

	w.comments(server, 2, "1", gitopsv1alpha1.CommitPending, "2/3 clusters")
	if got := w.runs("team", "fleet"); got.After != 30*time.Second {
		t.Errorf("news of what stays pending: %+v, want it to wait for 30 s", got)
	}
	w.clock.SetTime(start.Add(30 * time.Second))
	w.loop = New(w.hub, w.hub, w.loop.opts)
	w.expect("the wait is over, after a restart", w.runs("team", "fleet"), posted("1", 2))

	w.comments(server, 3, "2", gitopsv1alpha1.CommitSuccess, "all is well")
	w.expect("the next commit", w.runs("team", "fleet"), posted("2", 3))
	want := []string{
		"POST 1: 1/3 clusters", "PATCH 1: 2/3 clusters",
		"PATCH 1: ### `kustomization/fleet`: ⏹ ended at `11111111`\n\n`superseded by 22222222`\n", "POST 2: all is well",
	}
	if diff := cmp.Diff(want, forge.writes); diff != "" {
		t.Errorf("what the forge was told (-want +got):\n%s", diff)
	}
}

// TestACommentIsFoundAgain: it is the same one for a CommitStatus that was made anew.
func TestACommentIsFoundAgain(t *testing.T) {
	owned := func(uid, owner types.UID, provider string) *gitopsv1alpha1.CommitStatus {
		yes := true
		cs := &gitopsv1alpha1.CommitStatus{ObjectMeta: metav1.ObjectMeta{UID: uid}, Spec: gitopsv1alpha1.CommitStatusSpec{ProviderRef: gitopsv1alpha1.LocalReference{Name: provider}}}
		if owner != "" {
			cs.OwnerReferences = []metav1.OwnerReference{{UID: owner, Controller: &yes}}
		}
		return cs
	}
	if a, b := keyOf(owned("1", "source", "forge")), keyOf(owned("2", "source", "forge")); a != b {
		t.Errorf("keys %s and %s, want the same", a, b)
	}
	for _, other := range []*gitopsv1alpha1.CommitStatus{owned("1", "another", "forge"), owned("1", "source", "second"), owned("2", "", "forge")} {
		if keyOf(other) == keyOf(owned("1", "source", "forge")) {
			t.Errorf("%+v has the key of another one", other)
		}
	}
}

// TestACommitThatNoPullRequestBrought: the forge may get to know it in a while; then nothing is reported, which is
// no fault.
func TestACommitThatNoPullRequestBrought(t *testing.T) {
	forge := &pulls{none: true}
	server := httptest.NewServer(forge)
	t.Cleanup(server.Close)
	w := newTenants(t, Options{}, "team")
	w.commenting()
	w.comments(server, 1, "1", gitopsv1alpha1.CommitSuccess, "all is well")
	says := outcome{
		After: 5 * time.Second, Synced: "Unknown", Reason: "NoPullRequest", Seen: 1, Writes: 1,
		Message: "no pull request brought the commit " + strings.Repeat("1", 40),
	}
	w.expect("at first", w.runs("team", "fleet"), says)
	w.clock.SetTime(start.Add(10 * time.Second))
	says.Writes = 0
	w.expect("soon", w.runs("team", "fleet"), says)
	w.clock.SetTime(start.Add(30 * time.Second))
	says.After, says.Synced, says.Writes = 0, "True", 1
	w.expect("later", w.runs("team", "fleet"), says)

	w.comments(server, 2, "2", gitopsv1alpha1.CommitSuccess, "all is well")
	forge.none = false
	w.expect("the next commit", w.runs("team", "fleet"), outcome{Synced: "True", Reason: "Posted", Message: "the forge knows", Posted: "2", Seen: 2, Writes: 1})
}

// TestWhatTheCommentOfTheSourceSays: a Kustomization has no comment of its own, and nothing is asked for it.
func TestWhatTheCommentOfTheSourceSays(t *testing.T) {
	w := newTenants(t, Options{}, "team")
	w.commenting()
	w.reports("team", "web", 1, "a")
	cs := &gitopsv1alpha1.CommitStatus{}
	w.check(w.hub.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "web"}, cs))
	cs.Spec.KustomizationRef = &gitopsv1alpha1.LocalReference{Name: "web"}
	w.check(w.hub.Update(t.Context(), cs))
	w.expect("it", w.runs("team", "web"), outcome{Synced: "True", Reason: "InComment", Message: "the comment of its source tells it", Seen: 1, Writes: 1})
	if len(w.posts) > 0 || w.reads > 0 {
		t.Errorf("posted %v, and read %d Secrets", w.posts, w.reads)
	}
}
