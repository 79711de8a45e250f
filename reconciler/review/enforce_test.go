package review_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/forge"
)

// enforcing is a world in which approvals of what reaches Europe are enforced. The source is at commit b.
func enforcing(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, func(o *gitopsv1alpha1.PullRequestReview) {
		inEurope(gitopsv1alpha1.ReviewApprovers{Users: []string{"ann"}})(o)
		o.Spec.Enforce = true
	})
	w.pulls, w.parents, w.merged, w.approvers = nil, map[string]string{}, map[string]forge.PullRequest{}, map[int64][]string{}
	w.wants("there is no commit yet")
	w.wantEnforced("there is no commit yet", "")
	w.gets(hash("b"))
	w.wantEnforced("what there is when it is set needs nobody", "b")
	return w
}

// gets has the source get a commit, and reviews.
func (w *world) gets(commit string) {
	w.t.Helper()
	source := &sourcev1.GitRepository{}
	if err := w.hub.Get(w.t.Context(), client.ObjectKey{Namespace: "flux", Name: "fleet"}, source); err != nil {
		w.t.Fatal(err)
	}
	source.Status.Artifact = &meta.Artifact{Revision: "main@sha1:" + commit, Path: "x", URL: "x", Digest: "sha256:" + hash("0")}
	if err := w.hub.Update(w.t.Context(), source); err != nil {
		w.t.Fatal(err)
	}
	w.pass()
}

// approvesOf has a commit approved of by hand, and reviews.
func (w *world) approvesOf(commit string) {
	w.t.Helper()
	object := &gitopsv1alpha1.PullRequestReview{}
	if err := w.hub.Get(w.t.Context(), client.ObjectKey{Namespace: "flux", Name: "fleet"}, object); err != nil {
		w.t.Fatal(err)
	}
	object.Annotations = map[string]string{gitopsv1alpha1.ApprovedCommitAnnotation: commit}
	if err := w.hub.Update(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
	w.pass()
}

// pushes has a commit upon another one.
func (w *world) pushes(commit, parent string, files artifact.Files) {
	w.commits[hash(commit)], w.parents[hash(commit)], w.refs["main"] = files, hash(parent), hash(commit)
}

// merges has a pull request, whose head was made of a base, merged as a commit.
func (w *world) merges(number int64, head, base string, of artifact.Files, as string) {
	pull := forge.PullRequest{Number: number, Head: hash(head), Ref: "refs/pull/" + string(rune('0'+number)) + "/head", Base: "main", Author: "bob", Merged: true}
	w.commits[pull.Head], w.refs[pull.Ref], w.bases[pull.Head], w.merged[hash(as)] = of, pull.Head, hash(base), pull
}

// wantEnforced checks how far the source has its approvals: the first digit of that commit, and what is said of one that is held.
func (w *world) wantEnforced(why, want string) {
	w.t.Helper()
	got := ""
	if e := w.status().Enforced; e != nil {
		if got = e.ApprovedCommit[:1]; e.Held != nil {
			got += " " + e.Held.Message
		}
	}
	if got != want {
		w.t.Fatalf("%s: %q, want %q; %q", why, got, want, w.phases())
	}
}

// with returns the file of a commit, with some lines of it replaced.
func with(pairs ...string) artifact.Files { return text(strings.NewReplacer(pairs...).Replace(lines)) }

func TestEnforceByPullRequests(t *testing.T) {
	w := enforcing(t)
	w.merges(7, "d", "b", with("a: one", "a: two"), "1")
	w.pushes("1", "b", with("a: one", "a: two"))
	w.approvers[7] = []string{"bob", "ann"}
	w.gets(hash("1"))
	w.wantEnforced("approved, and merged", "1")

	w.merges(8, "e", "b", with("c: one", "c: two"), "2") // its head does not have what was merged before
	w.pushes("2", "1", with("a: one", "a: two", "c: one", "c: two"))
	w.gets(hash("2"))
	w.wantEnforced("merged alone", "1 pull request 8 awaits europe: ann")
	if diff := cmp.Diff([]gitopsv1alpha1.NeededApproval{{Name: "europe", Users: []string{"ann"}, Count: 1}}, w.status().Enforced.Held.Approvals); diff != "" {
		t.Errorf("approvals (-want +got):\n%s", diff)
	}
	w.approvers[8] = []string{"bob"}
	w.pass()
	w.wantEnforced("the author approves", "1 pull request 8 awaits europe: ann")

	w.merges(9, "f", "2", with("a: one", "a: three", "c: one", "c: two"), "3")
	w.pushes("3", "2", with("a: one", "a: three", "c: one", "c: two"))
	w.approvers[9] = []string{"ann"}
	w.gets(hash("3"))
	w.wantEnforced("what comes after it waits for it", "1 pull request 8 awaits europe: ann")
	w.start()
	w.pass()
	w.wantEnforced("after a restart", "1 pull request 8 awaits europe: ann")
	w.refuses = func(what string) error {
		return map[string]error{"approvers": errors.New("connection refused")}[what]
	}
	w.approvers[8] = []string{"ann"}
	w.pass()
	w.wantEnforced("the forge does not say", "1 pull request 8 awaits europe: ann")
	w.refuses = func(string) error { return nil }
	w.pass()
	w.wantEnforced("somebody approves after the merge", "3")
}

func TestEnforceAPush(t *testing.T) {
	w := enforcing(t)
	w.pushes("1", "b", with("a: one", "a: two"))
	w.gets(hash("1"))
	w.wantEnforced("it was pushed", "b commit 1111111111 was pushed, and awaits europe: ann")
	w.pushes("2", "1", artifact.Files{"app/web.yaml": with("a: one", "a: two")["app/web.yaml"], "README.md": {Data: []byte("x")}})
	w.gets(hash("2"))
	w.wantEnforced("another one that needs nothing", "b commit 1111111111 was pushed, and awaits europe: ann")
	w.pushes("3", "2", artifact.Files{"app/web.yaml": text(lines)["app/web.yaml"], "README.md": {Data: []byte("x")}})
	w.gets(hash("3"))
	w.wantEnforced("it is reverted", "3")

	w.pushes("4", "3", with("a: one", "a: four"))
	w.gets(hash("4"))
	w.approvesOf(hash("1"))
	w.wantEnforced("another commit is approved of by hand", "3 commit 4444444444 was pushed, and awaits europe: ann")
	w.approvesOf(hash("4"))
	w.wantEnforced("this one is", "4")
}

// TestEnforceWhatAMergeHolds: a commit that a forge takes for the merge of an approved pull request, and that holds something else, or
// something more, has no approvals.
func TestEnforceWhatAMergeHolds(t *testing.T) {
	w := enforcing(t)
	w.merges(7, "d", "b", with("a: one", "a: two"), "1")
	w.pushes("1", "b", with("a: one", "a: two", "b: one", "b: hidden"))
	w.approvers[7] = []string{"ann"}
	w.gets(hash("1"))
	w.wantEnforced("more than the merge", "b commit 1111111111 was pushed, and awaits europe: ann")

	w = enforcing(t)
	w.merges(7, "d", "b", with("a: one", "a: two"), "1")
	w.refs["refs/pull/7/head"] = hash("e")
	w.pushes("1", "b", with("a: one", "a: two"))
	w.approvers[7] = []string{"ann"}
	w.gets(hash("1"))
	w.wantEnforced("its ref leads elsewhere", "b commit 1111111111 was pushed, and awaits europe: ann")

	w = enforcing(t)
	w.merges(7, "d", "b", with("a: one", "a: two"), "1")
	other := w.merged[hash("1")]
	other.Base = "unprotected"
	w.merged[hash("1")] = other
	w.pushes("1", "b", with("a: one", "a: two"))
	w.approvers[7] = []string{"ann"}
	w.gets(hash("1"))
	w.wantEnforced("it was merged into another branch", "b commit 1111111111 was pushed, and awaits europe: ann")
}

// TestEnforceARebase: of the commits that a rebase brings, a forge may know the last one alone.
func TestEnforceARebase(t *testing.T) {
	w := enforcing(t)
	w.merges(7, "d", "b", with("a: one", "a: two", "b: one", "b: two"), "2")
	w.pushes("1", "b", with("a: one", "a: two"))
	w.pushes("2", "1", with("a: one", "a: two", "b: one", "b: two"))
	w.approvers[7] = []string{"ann"}
	w.gets(hash("2"))
	w.wantEnforced("two commits of one pull request", "2")
	w.pushes("3", "2", with("a: one", "a: two", "b: one", "b: two", "c: one", "c: two"))
	w.merges(8, "e", "3", with("a: one", "a: three", "b: one", "b: two", "c: one", "c: two"), "4")
	w.pushes("4", "3", with("a: one", "a: three", "b: one", "b: two", "c: one", "c: two"))
	w.approvers[8] = []string{"ann"}
	w.gets(hash("4"))
	w.wantEnforced("a push hides below an approved merge", "2 commit 3333333333 was pushed, and awaits europe: ann")
}

// TestEnforceWithoutWhatIsNeeded: what cannot be found out is not approved.
func TestEnforceWithoutWhatIsNeeded(t *testing.T) {
	w := enforcing(t)
	w.refs["main"] = hash("1")
	w.missing[hash("1")] = errors.New("connection refused")
	w.gets(hash("1"))
	w.wantEnforced("the commit cannot be fetched", "b it is not known yet what it needs: connection refused")
	delete(w.missing, hash("1"))
	w.commits[hash("1")] = with("a: one", "a: two")
	w.refuses = func(what string) error {
		return map[string]error{"merged": errors.New("connection refused")}[what]
	}
	w.parents[hash("1")] = hash("b")
	w.start()
	w.pass()
	w.wantEnforced("the forge does not say", "b it is not known yet what it needs: connection refused")
	w.refuses = func(string) error { return nil }
	w.pass()
	w.wantEnforced("it says", "b commit 1111111111 was pushed, and awaits europe: ann")
	w.commits[hash("2")] = text(lines + "  d: one\n")
	w.gets(hash("2"))
	w.wantEnforced("another history", "b commit 2222222222 was pushed, and awaits europe: ann")
	w.commits[hash("3")] = text(lines)
	w.gets(hash("3"))
	w.wantEnforced("another history with the same files", "3")
}
