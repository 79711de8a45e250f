package repository_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	"github.com/flotilla-io/flotilla/policies/lineage"
	"github.com/flotilla-io/flotilla/sources/repository"
)

// TestHistory walks through the life of a branch that is not always moved ahead.
func TestHistory(t *testing.T) {
	b := newBench(t, repository.Options{})
	b.commit("one", map[string]string{"a.yaml": "a: 1"})
	b.create(nil)
	before := "" // the commit that the artifact was of
	force := func(to string) func() {
		return func() {
			b.run("reset", "--quiet", "--hard", to)
			b.run("push", "--quiet", "--force", "origin", "HEAD")
		}
	}
	amend := func() {
		b.run("commit", "--quiet", "--amend", "--allow-empty", "-m", "rewritten "+before)
		b.run("push", "--quiet", "--force", "origin", "HEAD")
	}
	annotate := func(value string) {
		b.update(func(o *sourcev1.GitRepository) {
			o.Annotations = map[string]string{"gitops.flotilla.io/rollback-protection": value}
		})
	}
	const (
		rewritten = "the history was rewritten, and does not contain main@sha1:BEFORE"
		back      = "the history was moved back, and does not contain main@sha1:BEFORE"
		mistyped  = `the annotation gitops.flotilla.io/rollback-protection is "on": make it "hold", or remove it`
		next      = "; push a commit that does, or remove the annotation gitops.flotilla.io/rollback-protection to take it"
	)
	stored := []string{"ArtifactInStorage=True Succeeded", "Ready=True Succeeded"}
	held := []string{"ArtifactInStorage=True Succeeded", "Ready=False HistoryRewritten", "Reconciling=True ProgressingWithRetry"}
	for _, step := range []struct {
		what       string
		change     func()
		conditions []string
		says       string // after the revision
		events     []string
		stays      bool // the artifact
	}{
		{what: "the first commit", change: func() {}, conditions: stored, events: []string{"Normal NewArtifact"}},
		{what: "the next one", change: func() { b.commit("two", nil) }, conditions: stored, events: []string{"Normal NewArtifact"}},
		{what: "another one in its place", change: amend, conditions: stored, says: ": " + rewritten, events: []string{"Normal NewArtifact", "Warning HistoryRewritten"}},
		{what: "other files of it", change: func() { b.update(func(o *sourcev1.GitRepository) { o.Spec.Ignore = ptr.To("x") }) }, conditions: stored, says: ": " + rewritten},
		{what: "one that follows", change: func() { b.commit("three", nil) }, conditions: stored, events: []string{"Normal NewArtifact"}},
		{what: "moved back", change: force("HEAD~1"), conditions: stored, says: ": " + back, events: []string{"Normal NewArtifact", "Warning HistoryRewritten"}},
		{what: "held, and moved ahead", change: func() { annotate("hold"); b.commit("four", nil) }, conditions: stored, events: []string{"Normal NewArtifact"}},
		{what: "held, and moved back", change: force("HEAD~1"), conditions: held, says: " is held back: " + back + next, events: []string{"Warning HistoryRewritten"}, stays: true},
		{what: "held, and ahead again", change: func() { force("ORIG_HEAD")(); b.commit("five", nil) }, conditions: stored, events: []string{"Normal NewArtifact"}},
		{what: "held, and rewritten", change: amend, conditions: held, says: " is held back: " + rewritten + next, events: []string{"Warning HistoryRewritten"}, stays: true},
		{what: "held, and further on, beside it", change: func() { b.commit("six", nil) }, conditions: held, says: " is held back: " + rewritten + next, stays: true},
		{what: "the guard is mistyped", change: func() { annotate("on") }, conditions: []string{"ArtifactInStorage=True Succeeded", "Ready=False InvalidAnnotation", "Stalled=True InvalidAnnotation"}, says: mistyped, events: []string{"Warning InvalidAnnotation"}, stays: true},
		{what: "held no more", change: func() { annotate("") }, conditions: stored, says: ": " + rewritten, events: []string{"Normal NewArtifact", "Warning HistoryRewritten"}},
		{what: "another branch", change: func() {
			b.run("checkout", "--quiet", "-b", "dev", "HEAD~1")
			b.commit("dev", nil)
			b.update(func(o *sourcev1.GitRepository) { o.Spec.Reference.Branch = "dev" })
		}, conditions: stored, events: []string{"Normal NewArtifact"}},
	} {
		t.Run(step.what, func(t *testing.T) {
			was := b.object().Status.Artifact
			if before = ""; was != nil {
				before = was.Revision[strings.Index(was.Revision, ":")+1:][:8]
			}
			if step.says == ": "+rewritten && len(step.events) == 0 {
				before = b.said()
			}
			step.change()
			if _, err, _, events := b.reconcile(); err != nil {
				t.Fatal(err)
			} else if diff := cmp.Diff(step.events, kinds(events)); diff != "" {
				t.Errorf("events (-want +got):\n%s\n%q", diff, events)
			}
			object := b.object()
			if diff := cmp.Diff(step.conditions, conditions(object)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			revision := object.Spec.Reference.Branch + "@sha1:" + b.run("rev-parse", "HEAD")
			want := "stored artifact for revision '" + revision + "'"
			switch {
			case step.says == mistyped:
				want = ""
			case step.stays:
				want = revision
			}
			want += strings.ReplaceAll(step.says, "BEFORE", before)
			if got := apimeta.FindStatusCondition(object.Status.Conditions, meta.ReadyCondition).Message; got != want {
				t.Errorf("Ready says %q\nwant %q", got, want)
			}
			if stays := was != nil && object.Status.Artifact.Revision == was.Revision; stays != (step.stays || len(step.events) == 0) {
				t.Errorf("the artifact stays: %t", stays)
			}
			if isHeld := lineage.RefusedBy(object).Revision; (isHeld == revision) != (step.stays && step.says != mistyped) {
				t.Errorf("held: %q", isHeld)
			}
			if _, _, writes, events := b.reconcile(); writes != 0 || len(events) != 0 {
				t.Errorf("the next run wrote %d times, with the Events %q", writes, events)
			}
		})
	}
}

// TestHistoryOfVersions walks through the tags that a range leads to.
func TestHistoryOfVersions(t *testing.T) {
	b := newBench(t, repository.Options{})
	refer := func(semver string) {
		b.update(func(o *sourcev1.GitRepository) { o.Spec.Reference = &sourcev1.GitRepositoryRef{SemVer: semver} })
	}
	release := func(name string) func() {
		return func() {
			b.run("commit", "--quiet", "--allow-empty", "-m", name)
			b.run("tag", name)
			b.run("push", "--quiet", "origin", name)
		}
	}
	withdraw := func(name string) func() { return func() { b.run("push", "--quiet", "origin", ":"+name) } }
	orphan := func(name string) func() {
		return func() {
			b.run("checkout", "--quiet", "--orphan", "orphan-"+name)
			release(name)()
		}
	}
	annotate := func(value string) func() {
		return func() {
			b.update(func(o *sourcev1.GitRepository) {
				o.Annotations = map[string]string{"gitops.flotilla.io/rollback-protection": value}
			})
		}
	}
	const next = "; push a higher version that does, ask for the versions of one branch in spec.ref.semver, as 1.2.x, or remove the annotation gitops.flotilla.io/rollback-protection to take it"
	b.commit("one", map[string]string{"a.yaml": "a: 1"})
	release("v1.0.0")()
	b.create(func(o *sourcev1.GitRepository) { o.Spec.Reference = &sourcev1.GitRepositoryRef{SemVer: "1.x"} })
	for _, step := range []struct {
		what   string
		change func()
		takes  string // the tag
		says   string // after the revision
		events []string
	}{
		{"the first version", func() {}, "v1.0.0", "", []string{"Normal NewArtifact"}},
		{"the next one", release("v1.1.0"), "v1.1.0", "", []string{"Normal NewArtifact"}},
		{"the newest is deleted", withdraw("v1.1.0"), "v1.0.0", ": the history was moved back, and does not contain v1.1.0@sha1:BEFORE", []string{"Normal NewArtifact", "Warning HistoryRewritten"}},
		{"one that follows", release("v1.2.0"), "v1.2.0", "", []string{"Normal NewArtifact"}},
		{"one of another branch", func() {
			b.run("checkout", "--quiet", "-b", "next", "v1.0.0")
			release("v1.3.0")()
		}, "v1.3.0", ": it is a higher version, of a history that does not contain v1.2.0@sha1:BEFORE", []string{"Normal NewArtifact"}},
		{"held, and deleted", func() { annotate("hold")(); withdraw("v1.3.0")() }, "", "v1.2.0 is held back: the history was moved back, and does not contain v1.3.0@sha1:BEFORE" + next, []string{"Warning HistoryRewritten"}},
		{"held, and one that follows", release("v1.4.0"), "v1.4.0", "", []string{"Normal NewArtifact"}},
		{"held, and one without a history under a higher tag", orphan("v1.5.0"), "", "v1.5.0 is held back: it is a higher version, of a history that does not contain v1.4.0@sha1:BEFORE" + next, []string{"Warning HistoryRewritten"}},
		{"held, and the range leads elsewhere", func() { refer("1.0.x") }, "v1.0.0", "", []string{"Normal NewArtifact"}},
		{"held, and the range that was", func() { refer("1.x") }, "", "v1.5.0 is held back: it is a higher version, of a history that does not contain v1.0.0@sha1:BEFORE" + next, []string{"Warning HistoryRewritten"}},
		{"held no more", annotate(""), "v1.5.0", ": it is a higher version, of a history that does not contain v1.0.0@sha1:BEFORE", []string{"Normal NewArtifact"}},
	} {
		t.Run(step.what, func(t *testing.T) {
			was := b.object().Status.Artifact
			step.change()
			if _, err, _, events := b.reconcile(); err != nil {
				t.Fatal(err)
			} else if diff := cmp.Diff(step.events, kinds(events)); diff != "" {
				t.Errorf("events (-want +got):\n%s\n%q", diff, events)
			}
			revision := func(tag string) string { return tag + "@sha1:" + b.run("rev-parse", tag+"^{commit}") }
			var want, taken string
			if tag, text, held := strings.Cut(step.says, " is held back"); held {
				want, taken = revision(tag)+" is held back"+text, was.Revision
			} else {
				taken = revision(step.takes)
				want = "stored artifact for revision '" + taken + "'" + step.says
			}
			if was != nil {
				want = strings.ReplaceAll(want, "BEFORE", was.Revision[strings.Index(was.Revision, ":")+1:][:8])
			}
			object := b.object()
			if got := apimeta.FindStatusCondition(object.Status.Conditions, meta.ReadyCondition).Message; got != want || object.Status.Artifact.Revision != taken {
				t.Errorf("Ready says %q\nwant %q; the artifact is of %s", got, want, object.Status.Artifact.Revision)
			}
			if _, _, writes, events := b.reconcile(); writes != 0 || len(events) != 0 {
				t.Errorf("the next run wrote %d times, with the Events %q", writes, events)
			}
		})
	}
}

// said returns the commit that the artifact does not follow.
func (b *bench) said() string {
	b.t.Helper()
	text := b.object().Status.Artifact.Metadata["gitops.flotilla.io/history"]
	return text[strings.LastIndex(text, ":")+1:]
}

// kinds returns the types and reasons of Events.
func kinds(events []string) []string {
	var out []string
	for _, event := range events {
		kind, _, _ := strings.Cut(event, ":")
		out = append(out, kind)
	}
	return out
}
