package repository_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/repository"
)

// TestWhatIsInUseIsKept checks that artifacts in use are kept in addition to the
// latest one, and fetched again if the store lost them, even for a commit that is
// no longer on any branch.
func TestWhatIsInUseIsKept(t *testing.T) {
	var used []artifact.Used
	opts := repository.Options{
		InUse:  func(context.Context, client.ObjectKey) ([]artifact.Used, error) { return used, nil },
		Jitter: func(d time.Duration) time.Duration { return d },
	}
	b := newBench(t, opts)
	b.create(nil)
	owner := artifact.Owner("GitRepository", key.Namespace, key.Name)
	b.commit("first", map[string]string{"app.yaml": "first"})
	b.mustReconcile()
	first := b.object().Status.Artifact
	used = []artifact.Used{{Digest: first.Digest, Revision: first.Revision}}
	for _, text := range []string{"second", "third", "fourth"} {
		b.commit(text, map[string]string{"app.yaml": text})
		b.mustReconcile()
	}
	holds := func(when string, want bool) {
		t.Helper()
		if owns := b.store.Owns(owner, first.Digest); owns != want {
			t.Errorf("%s: the artifact in use is there = %v", when, owns)
		}
	}
	holds("after three commits", true)

	b.dir = t.TempDir()
	b.restart(opts)
	b.mustReconcile()
	holds("with another disk", true)
	if diff := cmp.Diff(b.object().Status.Artifact.Revision, "main@sha1:"+b.run("rev-parse", "HEAD")); diff != "" {
		t.Errorf("the latest is another one (-want +got):\n%s", diff)
	}

	b.run("checkout", "--quiet", "--orphan", "other")
	b.run("commit", "--quiet", "--allow-empty", "-m", "anew")
	b.run("push", "--quiet", "--force", "origin", "HEAD:main")
	b.mustReconcile()
	holds("after the history was rewritten", true)

	used = nil
	b.run("commit", "--quiet", "--allow-empty", "-m", "anew and anew")
	b.run("push", "--quiet", "--force", "origin", "HEAD:main")
	for _, text := range []string{"fifth", "sixth"} {
		b.run("commit", "--quiet", "--allow-empty", "-m", text)
		b.commit(text, map[string]string{"app.yaml": text})
		b.run("push", "--quiet", "--force", "origin", "HEAD:main")
		b.mustReconcile()
	}
	holds("once nobody uses it", false)
}

// TestWhatIsInUseAndGone checks that a repository stays ready if the remote no
// longer serves a commit in use.
func TestWhatIsInUseAndGone(t *testing.T) {
	asked := artifact.Used{Digest: "sha256:0000000000000000000000000000000000000000000000000000000000000000", Revision: "main@sha1:0123456789012345678901234567890123456789"}
	opts := repository.Options{
		InUse: func(context.Context, client.ObjectKey) ([]artifact.Used, error) {
			return []artifact.Used{asked}, nil
		},
		Jitter: func(d time.Duration) time.Duration { return d },
	}
	b := newBench(t, opts)
	b.create(nil)
	b.commit("first", map[string]string{"app.yaml": "first"})
	b.mustReconcile()
	if diff := cmp.Diff(stored, conditions(b.object())); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}
