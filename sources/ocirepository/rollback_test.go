package ocirepository_test

import (
	"net/http"
	"strings"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/sources/ocirepository"
)

// TestATagThatMovesBack: an older artifact is taken and told, or held back where that is asked for.
func TestATagThatMovesBack(t *testing.T) {
	const protection = "gitops.flotilla.io/rollback-protection"
	b := newBench(t, ocirepository.Options{})
	push := func(tag, content, created string) func() {
		return func() {
			about := map[string]string{"gitops.flotilla.io/history": "forged", "gitops.flotilla.io/submodules": "forged"}
			if created != "" {
				about["org.opencontainers.image.created"] = "2026-12-01T" + created + ":00Z"
			}
			if _, err := b.registry.Push(t.Context(), "app", tag, map[string]string{"app.yaml": content}, about); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove := func(tag string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, b.server.URL+"/v2/app/manifests/"+tag, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if _ = resp.Body.Close(); resp.StatusCode != http.StatusAccepted {
			t.Fatalf("delete %s: %s", tag, resp.Status)
		}
	}
	annotate := func(value string) func() {
		return func() {
			object := b.object()
			object.Annotations = map[string]string{protection: value}
			if err := b.hub.Update(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
	}
	refer := func(ref *sourcev1.OCIRepositoryRef) func() {
		return func() { b.edit(func(s *sourcev1.OCIRepositorySpec) { s.Reference = ref }) }
	}
	const newer = "; push a newer one, or remove the annotation " + protection + " to take it"
	push("latest", "one", "12:00")()
	b.create(nil)
	for _, step := range []struct {
		what     string
		change   func()
		ready    string
		artifact string
		events   []string
	}{
		{"the first", func() {}, "True Succeeded: stored artifact for digest 'latest@DIGEST'", "one", []string{"Normal NewArtifact"}},
		{"an older one", push("latest", "two", "11:00"), "True Succeeded: stored artifact for digest 'latest@DIGEST': it was made before latest@DIGEST", "two", []string{"Normal NewArtifact", "Warning HistoryRewritten"}},
		{"of another selection", func() {
			ignore := "x"
			b.edit(func(s *sourcev1.OCIRepositorySpec) { s.Ignore = &ignore })
		}, "True Succeeded: stored artifact for digest 'latest@DIGEST': it was made before latest@DIGEST", "two", nil},
		{"a newer one", push("latest", "three", "13:00"), "True Succeeded: stored artifact for digest 'latest@DIGEST'", "three", []string{"Normal NewArtifact"}},
		{"one that does not say when", push("latest", "four", ""), "True Succeeded: stored artifact for digest 'latest@DIGEST'", "four", []string{"Normal NewArtifact"}},
		{"a newer one again", push("latest", "five", "14:00"), "True Succeeded: stored artifact for digest 'latest@DIGEST'", "five", []string{"Normal NewArtifact"}},
		{"a guard that is mistyped", annotate("on"), `False InvalidAnnotation: the annotation gitops.flotilla.io/rollback-protection is "on": make it "hold", or remove it`, "five", []string{"Warning InvalidAnnotation"}},
		{"older ones are held back", func() { annotate("hold")(); push("latest", "six", "13:30")() }, "False HistoryRewritten: latest@DIGEST is held back: it was made before latest@DIGEST" + newer, "five", []string{"Warning HistoryRewritten"}},
		{"one that does not say when is, too", push("latest", "seven", ""), "False HistoryUnknown: latest@DIGEST is held back: it is not known whether it is newer than latest@DIGEST: only versions as tags, and the annotation org.opencontainers.image.created, tell" + newer, "five", []string{"Warning HistoryUnknown"}},
		{"a newer one is taken", push("latest", "eight", "15:00"), "True Succeeded: stored artifact for digest 'latest@DIGEST'", "eight", []string{"Normal NewArtifact"}},
		{"another tag is what somebody asks for", func() { push("v1.10.0", "nine", "10:00")(); refer(&sourcev1.OCIRepositoryRef{Tag: "v1.10.0"})() }, "True Succeeded: stored artifact for digest 'v1.10.0@DIGEST'", "nine", []string{"Normal NewArtifact"}},
		{"a range that the tag before is not in, too", func() { push("v1.9.0", "ten", "16:00")(); refer(&sourcev1.OCIRepositoryRef{SemVer: "<1.10"})() }, "True Succeeded: stored artifact for digest 'v1.9.0@DIGEST'", "ten", []string{"Normal NewArtifact"}},
		{"a range with a higher version", func() { push("v1.11.0", "eleven", "09:00")(); refer(&sourcev1.OCIRepositoryRef{SemVer: "1.x"})() }, "True Succeeded: stored artifact for digest 'v1.11.0@DIGEST'", "eleven", []string{"Normal NewArtifact"}},
		{"the newest of a range is deleted", func() { remove("v1.11.0") }, "False HistoryRewritten: v1.10.0@DIGEST is held back: it is of an older version than v1.11.0@DIGEST" + newer, "eleven", []string{"Warning HistoryRewritten"}},
		{"a filter that the version before does not pass", func() { refer(&sourcev1.OCIRepositoryRef{SemVer: "1.x", SemverFilter: "v1[.]9"})() }, "True Succeeded: stored artifact for digest 'v1.9.0@DIGEST'", "ten", []string{"Normal NewArtifact"}},
		{"a tag that is no version", func() { refer(&sourcev1.OCIRepositoryRef{Tag: "latest"})() }, "True Succeeded: stored artifact for digest 'latest@DIGEST'", "eight", []string{"Normal NewArtifact"}},
		{"a range after one that is none", func() { refer(&sourcev1.OCIRepositoryRef{SemVer: "1.x"})() }, "True Succeeded: stored artifact for digest 'v1.10.0@DIGEST'", "nine", []string{"Normal NewArtifact"}},
		{"without the guard", func() { annotate("")(); remove("v1.10.0") }, "True Succeeded: stored artifact for digest 'v1.9.0@DIGEST': it is of an older version than v1.10.0@DIGEST", "ten", []string{"Normal NewArtifact", "Warning HistoryRewritten"}},
	} {
		b.events = nil
		step.change()
		b.reconcile()
		var events []string
		for _, e := range b.events {
			kind, _, _ := strings.Cut(e, ":")
			events = append(events, kind)
		}
		if diff := cmp.Diff([]any{step.ready, step.artifact, step.events}, []any{revision.ReplaceAllString(b.ready(), "DIGEST"), b.files()["app.yaml"], events}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.what, diff)
		}
		b.writes, b.events = 0, nil
		if b.reconcile(); b.writes != 0 || len(b.events) != 0 {
			t.Errorf("%s: the next run wrote %d times, with the Events %v", step.what, b.writes, b.events)
		}
	}
	if said := b.object().Status.Artifact.Metadata["gitops.flotilla.io/submodules"]; said != "" {
		t.Errorf("what somebody has pushed says of itself: %s", said)
	}
}
