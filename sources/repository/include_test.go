package repository_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/policies/provenance"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/repository"
)

// other creates or changes another GitRepository of the namespace.
func (b *bench) other(name string, change func(*sourcev1.GitRepository)) {
	b.t.Helper()
	object := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name}}
	err := b.hub.Get(b.t.Context(), client.ObjectKeyFromObject(object), object)
	if client.IgnoreNotFound(err) != nil {
		b.t.Fatal(err)
	}
	if err != nil {
		if err := b.hub.Create(b.t.Context(), object); err != nil {
			b.t.Fatal(err)
		}
	}
	change(object)
	status := object.Status
	if err := b.hub.Update(b.t.Context(), object); err != nil {
		b.t.Fatal(err)
	}
	object.Status = status
	if err := b.hub.Status().Update(b.t.Context(), object); err != nil {
		b.t.Fatal(err)
	}
}

// holds gives another GitRepository an artifact of these files.
func (b *bench) holds(name string, texts map[string]string) {
	b.t.Helper()
	files := artifact.Files{}
	for at, text := range texts {
		files[at] = artifact.File{Data: []byte(text)}
	}
	stored, err := b.store.Put(b.t.Context(), "GitRepository/shop/"+name, files)
	if err != nil {
		b.t.Fatal(err)
	}
	b.other(name, func(o *sourcev1.GitRepository) {
		o.Status.Artifact = &meta.Artifact{Digest: stored.Digest, Path: stored.Path, Revision: "main@sha1:" + strings.Repeat("b", 40), LastUpdateTime: metav1.NewTime(start)}
	})
}

func include(name, from, to string) sourcev1.GitRepositoryInclude {
	return sourcev1.GitRepositoryInclude{GitRepositoryRef: meta.LocalObjectReference{Name: name}, FromPath: from, ToPath: to}
}

// composed is what one run of the loop made of what is included.
type composed struct {
	// Reason and Says are those of Ready; Says is empty for success.
	Reason, Says string
	// Unavailable is the reason of IncludeUnavailable; empty for none.
	Unavailable string
	// Files are the paths of the artifact, between spaces.
	Files string
	// Included is how many artifacts the status names.
	Included int
	// MayBuild reports whether a Kustomization may build the artifact.
	MayBuild bool
}

func (b *bench) composed() composed {
	b.t.Helper()
	object := b.object()
	out := composed{Included: len(object.Status.IncludedArtifacts), MayBuild: provenance.Unverified(object) == ""}
	if c := apimeta.FindStatusCondition(object.Status.Conditions, meta.ReadyCondition); c != nil {
		if out.Reason = c.Reason; c.Status != metav1.ConditionTrue {
			out.Says = c.Message
		}
	}
	if c := apimeta.FindStatusCondition(object.Status.Conditions, sourcev1.IncludeUnavailableCondition); c != nil {
		out.Unavailable = c.Reason
	}
	if object.Status.Artifact != nil {
		files, err := b.store.Open(b.t.Context(), object.Status.Artifact.Digest)
		if err != nil {
			b.t.Fatal(err)
		}
		out.Files = strings.Join(slices.Sorted(maps.Keys(files)), " ")
	}
	return out
}

// TestInclude walks through the life of a repository that includes others.
func TestInclude(t *testing.T) {
	b := newBench(t, repository.Options{})
	head := b.commit("one", map[string]string{"app.yaml": "a: 1", "apps/web.yaml": "b: 1", "docs/x.yaml": "c: 1"})
	short := "main@sha1:" + head[:8]
	spec := func(all ...sourcev1.GitRepositoryInclude) func() {
		return func() { b.update(func(o *sourcev1.GitRepository) { o.Spec.Include = all }) }
	}
	b.create(nil)
	const own = "app.yaml apps/web.yaml docs/x.yaml"
	unavailable := func(reason, says, files string, included int) composed {
		return composed{Reason: reason, Says: says, Unavailable: reason, Files: files, Included: included, MayBuild: true}
	}
	stored := func(included int, files string) composed {
		return composed{Reason: "Succeeded", Files: files, Included: included, MayBuild: true}
	}
	digest := ""
	for _, step := range []struct {
		what   string
		change func()
		want   composed
	}{
		{"nothing is included", func() {}, stored(0, own)},
		{"what is not there", spec(include("base", "", "")), unavailable("NotFound", "include base: the GitRepository shop/base does not exist: create it, or correct spec.include", own, 0)},
		{"it has no artifact", func() { b.other("base", func(*sourcev1.GitRepository) {}) }, unavailable("NoArtifact", "include base: the GitRepository has no artifact yet: look at its conditions", own, 0)},
		{"it has one", func() { b.holds("base", map[string]string{"x.yaml": "x: 1", "sub/y.yaml": "y: 1"}) }, stored(1, "app.yaml apps/web.yaml base/sub/y.yaml base/x.yaml docs/x.yaml")},
		{"it has another one", func() {
			digest = b.object().Status.Artifact.Digest
			b.holds("base", map[string]string{"x.yaml": "x: 2", "sub/y.yaml": "y: 1", "sub/z.png": "z"})
		}, stored(1, "app.yaml apps/web.yaml base/sub/y.yaml base/x.yaml docs/x.yaml")},
		{"a folder of it, elsewhere", spec(include("base", "./sub/", "/apps")), stored(1, "app.yaml apps/web.yaml apps/y.yaml docs/x.yaml")},
		{"one file of it", spec(include("base", "sub/y.yaml", "deep/y.yaml")), stored(1, "app.yaml apps/web.yaml deep/y.yaml docs/x.yaml")},
		{"into the root", spec(include("base", "", ".")), stored(1, "app.yaml apps/web.yaml docs/x.yaml sub/y.yaml x.yaml")},
		{"twice", spec(include("base", "", "a"), include("base", "sub", "b")), stored(2, "a/sub/y.yaml a/x.yaml app.yaml apps/web.yaml b/y.yaml docs/x.yaml")},
		{"a folder that it does not have", spec(include("base", "gone", "")), unavailable("CopyFailure", `include base: fromPath "gone": path not found in its artifact main@sha1:`+strings.Repeat("b", 40), "a/sub/y.yaml a/x.yaml app.yaml apps/web.yaml b/y.yaml docs/x.yaml", 2)},
		{"over a file of the repository", spec(include("base", "sub/y.yaml", "apps/web.yaml")), unavailable("CopyFailure", "files of "+short+": apps/web.yaml is there twice: the repository and the include base both have it; change toPath in spec.include, or remove one", "a/sub/y.yaml a/x.yaml app.yaml apps/web.yaml b/y.yaml docs/x.yaml", 2)},
		{"a file where a folder is", spec(include("base", "sub/y.yaml", "apps")), unavailable("CopyFailure", "files of "+short+": apps is there twice: the repository and the include base both have it; change toPath in spec.include, or remove one", "a/sub/y.yaml a/x.yaml app.yaml apps/web.yaml b/y.yaml docs/x.yaml", 2)},
		{"a folder where a file is", spec(include("base", "", "app.yaml")), unavailable("CopyFailure", "files of "+short+": app.yaml is there twice: the repository and the include base both have it; change toPath in spec.include, or remove one", "a/sub/y.yaml a/x.yaml app.yaml apps/web.yaml b/y.yaml docs/x.yaml", 2)},
		{"two over each other", spec(include("base", "", "n"), include("base", "", "n")), unavailable("CopyFailure", "files of "+short+": n/sub/y.yaml is there twice: the include base and the include base both have it; change toPath in spec.include, or remove one", "a/sub/y.yaml a/x.yaml app.yaml apps/web.yaml b/y.yaml docs/x.yaml", 2)},
		{"out of the repository", spec(include("base", "", "../up")), composed{Reason: "IllegalPath", Says: `include base: toPath "../up" leads out of the repository: give a path within it`, Unavailable: "IllegalPath", Files: "a/sub/y.yaml a/x.yaml app.yaml apps/web.yaml b/y.yaml docs/x.yaml", Included: 2, MayBuild: true}},
		{"itself", spec(include("app", "", "")), unavailable("IncludeCycle", "the repository would be in its own artifact: app includes app: take one of them out of spec.include", "a/sub/y.yaml a/x.yaml app.yaml apps/web.yaml b/y.yaml docs/x.yaml", 2)},
		{"one that includes it", func() {
			spec(include("base", "", ""))()
			b.other("base", func(o *sourcev1.GitRepository) {
				o.Spec.Include = []sourcev1.GitRepositoryInclude{include("app", "", "")}
			})
		}, unavailable("IncludeCycle", "the repository would be in its own artifact: app includes base, base includes app: take one of them out of spec.include", "a/sub/y.yaml a/x.yaml app.yaml apps/web.yaml b/y.yaml docs/x.yaml", 2)},
		{"which does so no more", func() { b.other("base", func(o *sourcev1.GitRepository) { o.Spec.Include = nil }) }, stored(1, "app.yaml apps/web.yaml base/sub/y.yaml base/x.yaml docs/x.yaml")},
		{"a sparse checkout, beside it", func() {
			b.update(func(o *sourcev1.GitRepository) { o.Spec.SparseCheckout = []string{"apps"} })
		}, stored(1, "apps/web.yaml base/sub/y.yaml base/x.yaml")},
		{"what is excluded, in it, too", func() {
			b.update(func(o *sourcev1.GitRepository) { o.Spec.SparseCheckout, o.Spec.Ignore = nil, ptr.To("x.yaml") })
		}, stored(1, "app.yaml apps/web.yaml base/sub/y.yaml base/sub/z.png")},
		{"it excludes something of its own", func() {
			b.update(func(o *sourcev1.GitRepository) { o.Spec.Ignore = nil })
			b.holds("base", map[string]string{"x.yaml": "x: 2", "sub/y.yaml": "y: 1", "sub/.sourceignore": "y.yaml"})
		}, stored(1, "app.yaml apps/web.yaml base/sub/.sourceignore base/x.yaml docs/x.yaml")},
		{"it is to be verified, and is not", func() {
			b.other("base", func(o *sourcev1.GitRepository) { o.Spec.Verification = verifying("") })
		}, composed{Reason: "VerificationError", Says: "include base: the artifact of main@sha1:" + strings.Repeat("b", 40) + " is not verified as spec.verify of GitRepository shop/base asks (HEAD)", Unavailable: "VerificationError", Files: "app.yaml apps/web.yaml base/sub/.sourceignore base/x.yaml docs/x.yaml", Included: 1}},
		{"nothing is asked of it any more", func() {
			b.other("base", func(o *sourcev1.GitRepository) { o.Spec.Verification = nil })
		}, stored(1, "app.yaml apps/web.yaml base/sub/.sourceignore base/x.yaml docs/x.yaml")},
		{"its status names what another one fetched", func() {
			theirs, err := b.store.Put(b.t.Context(), "GitRepository/theirs/app", artifact.Files{"secret.yaml": {Data: []byte("s: 1")}})
			if err != nil {
				b.t.Fatal(err)
			}
			b.other("base", func(o *sourcev1.GitRepository) { o.Status.Artifact.Digest = theirs.Digest })
		}, unavailable("NoArtifact", "include base: its artifact is not in the store: waiting for the GitRepository to fetch it anew", "app.yaml apps/web.yaml base/sub/.sourceignore base/x.yaml docs/x.yaml", 1)},
		{"nothing is included any more", spec(), stored(0, own)},
	} {
		t.Run(step.what, func(t *testing.T) {
			step.change()
			if _, err, _, _ := b.reconcile(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(step.want, b.composed()); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			if got := b.object().Status.Artifact; got.Revision != "main@sha1:"+head || got.Digest == digest {
				t.Errorf("the artifact has the revision %s, and the digest %s", got.Revision, got.Digest)
			}
			if _, _, writes, events := b.reconcile(); writes != 0 || len(events) != 0 {
				t.Errorf("the next run wrote %d times, with the Events %v", writes, events)
			}
		})
	}
}

// TestWhatIsIncludedCounts: the limits of an artifact are about all that is in it.
func TestWhatIsIncludedCounts(t *testing.T) {
	b := newBench(t, repository.Options{Limits: artifact.Limits{Files: 2}})
	b.commit("one", map[string]string{"app.yaml": "a: 1"})
	b.holds("base", map[string]string{"x.yaml": "x: 1", "y.yaml": "y: 1"})
	b.create(func(o *sourcev1.GitRepository) {
		o.Spec.Include = []sourcev1.GitRepositoryInclude{include("base", "", "")}
	})
	if _, err, _, _ := b.reconcile(); err != nil {
		t.Fatal(err)
	}
	if got := b.composed(); got.Reason != "GitOperationFailed" || !strings.Contains(got.Says, "more than 2 files") {
		t.Errorf("%+v", got)
	}
}

// TestWhatChangedIsTold: a new artifact of the same commit is told with why there is one.
func TestWhatChangedIsTold(t *testing.T) {
	b := newBench(t, repository.Options{})
	short := "main@sha1:" + b.commit("one", map[string]string{"app.yaml": "a: 1"})[:8]
	b.holds("base", map[string]string{"x.yaml": "x: 1"})
	b.create(func(o *sourcev1.GitRepository) {
		o.Spec.Include = []sourcev1.GitRepositoryInclude{include("base", "", "")}
	})
	stored := "Normal NewArtifact: stored artifact for commit 'one' (" + short + ")"
	for _, step := range []struct {
		what   string
		change func()
		want   string
	}{
		{"the first one", func() {}, stored},
		{"another base", func() { b.holds("base", map[string]string{"x.yaml": "x: 2"}) }, stored + ", as the included base is at main@sha1:bbbbbbbb"},
		{"other rules of what belongs to it", func() { b.update(func(o *sourcev1.GitRepository) { o.Spec.Ignore = ptr.To("app.yaml") }) }, stored + ", as what belongs to it changed"},
	} {
		t.Run(step.what, func(t *testing.T) {
			step.change()
			_, err, _, events := b.reconcile()
			if diff := cmp.Diff([]string{step.want}, events); diff != "" || err != nil {
				t.Errorf("%v, events (-want +got):\n%s", err, diff)
			}
		})
	}
}
