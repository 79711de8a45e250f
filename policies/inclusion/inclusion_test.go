package inclusion_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/policies/inclusion"
)

// TestRing is about who includes itself.
func TestRing(t *testing.T) {
	for name, tc := range map[string]struct {
		includes map[string][]string
		want     []string
	}{
		"nothing is included":                    {map[string][]string{}, nil},
		"what is included is not there":          {map[string][]string{"a": {"gone"}}, nil},
		"it includes itself":                     {map[string][]string{"a": {"b", "a"}}, []string{"a", "a"}},
		"two include each other":                 {map[string][]string{"a": {"b"}, "b": {"a"}}, []string{"a", "b", "a"}},
		"of two rings the shorter one":           {map[string][]string{"a": {"b", "d"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}, []string{"a", "d", "a"}},
		"a ring of others is none of its own":    {map[string][]string{"a": {"b"}, "b": {"c"}, "c": {"b"}}, nil},
		"what two of them include is not a ring": {map[string][]string{"a": {"b", "c"}, "b": {"d"}, "c": {"d"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := inclusion.Ring("a", func(name string) []string { return tc.includes[name] })
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if got, want := inclusion.RingText([]string{"a", "b", "a"}), "a includes b, b includes a: take one of them out of spec.include"; got != want {
		t.Errorf("RingText = %q, want %q", got, want)
	}
}

// TestPath is about where an include may lead.
func TestPath(t *testing.T) {
	for given, want := range map[string]string{
		"": ".", ".": ".", "/": ".", "./apps/": "apps", "/apps/web": "apps/web", "apps//web": "apps/web",
		"..": "", "../x": "", "apps/../../x": "", "apps/..": "", `apps\web`: "", "a\x00b": "",
	} {
		got, err := inclusion.Path(given)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("Path(%q) = %q, %v; want %q", given, got, err, want)
		}
	}
}

func repository(change func(*sourcev1.GitRepository)) *sourcev1.GitRepository {
	out := &sourcev1.GitRepository{Status: sourcev1.GitRepositoryStatus{Artifact: &meta.Artifact{Digest: "sha256:1", Revision: "main@sha1:1"}}}
	if change != nil {
		change(out)
	}
	return out
}

func of(name string) sourcev1.GitRepositoryInclude {
	return sourcev1.GitRepositoryInclude{GitRepositoryRef: meta.LocalObjectReference{Name: name}}
}

// TestConcerns is about which changes wake those that include a repository.
func TestConcerns(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*sourcev1.GitRepository)
		want   bool
	}{
		"nothing":              {func(*sourcev1.GitRepository) {}, false},
		"a condition":          {func(r *sourcev1.GitRepository) { r.Status.Conditions = []metav1.Condition{{Type: "Ready"}} }, false},
		"another interval":     {func(r *sourcev1.GitRepository) { r.Spec.Interval.Duration++ }, false},
		"another artifact":     {func(r *sourcev1.GitRepository) { r.Status.Artifact.Digest = "sha256:2" }, true},
		"another commit":       {func(r *sourcev1.GitRepository) { r.Status.Artifact.Revision = "main@sha1:2" }, true},
		"no artifact":          {func(r *sourcev1.GitRepository) { r.Status.Artifact = nil }, true},
		"another include":      {func(r *sourcev1.GitRepository) { r.Spec.Include = append(r.Spec.Include, of("x")) }, true},
		"it is to be verified": {func(r *sourcev1.GitRepository) { r.Spec.Verification = &sourcev1.GitRepositoryVerification{} }, true},
		"what it includes is not": {func(r *sourcev1.GitRepository) {
			r.Status.Conditions = []metav1.Condition{{Type: sourcev1.IncludeUnavailableCondition, Status: metav1.ConditionTrue, Reason: sourcev1.VerificationError}}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := inclusion.Concerns(repository(nil), repository(tc.change)); got != tc.want {
				t.Errorf("Concerns = %t, want %t", got, tc.want)
			}
		})
	}
}

// TestSame is about when an artifact holds what is included.
func TestSame(t *testing.T) {
	made := func(change func(*sourcev1.GitRepository)) *sourcev1.GitRepository {
		return repository(func(r *sourcev1.GitRepository) {
			r.Spec.Include = []sourcev1.GitRepositoryInclude{of("x")}
			r.Status.ObservedInclude = []sourcev1.GitRepositoryInclude{of("x")}
			r.Status.IncludedArtifacts = []*meta.Artifact{{Digest: "sha256:x"}}
			change(r)
		})
	}
	x := []*meta.Artifact{{Digest: "sha256:x", Revision: "later"}}
	for name, tc := range map[string]struct {
		of       *sourcev1.GitRepository
		included []*meta.Artifact
		want     bool
	}{
		"nothing is included":               {repository(nil), nil, true},
		"it is what was included":           {made(func(*sourcev1.GitRepository) {}), x, true},
		"it has another artifact":           {made(func(*sourcev1.GitRepository) {}), []*meta.Artifact{{Digest: "sha256:y"}}, false},
		"it belongs elsewhere":              {made(func(r *sourcev1.GitRepository) { r.Spec.Include[0].ToPath = "y" }), x, false},
		"it is included no more":            {made(func(r *sourcev1.GitRepository) { r.Spec.Include = nil }), nil, false},
		"the status names no artifact":      {made(func(r *sourcev1.GitRepository) { r.Status.IncludedArtifacts = nil }), x, false},
		"the status has a hole in the list": {made(func(r *sourcev1.GitRepository) { r.Status.IncludedArtifacts[0] = nil }), x, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := inclusion.Same(tc.of, tc.included); got != tc.want {
				t.Errorf("Same = %t, want %t", got, tc.want)
			}
		})
	}
}

// TestTexts is about what is told of what an artifact holds of others.
func TestTexts(t *testing.T) {
	of := func(names string, revisions ...string) *sourcev1.GitRepository {
		r := &sourcev1.GitRepository{}
		for n, name := range strings.Fields(names) {
			r.Status.ObservedInclude = append(r.Status.ObservedInclude, sourcev1.GitRepositoryInclude{GitRepositoryRef: meta.LocalObjectReference{Name: name}})
			if n < len(revisions) {
				commit := strings.Repeat(revisions[n], 40)
				r.Status.IncludedArtifacts = append(r.Status.IncludedArtifacts, &meta.Artifact{
					Revision: "main@sha1:" + commit, Digest: "sha256:" + commit,
					Metadata: map[string]string{"gitops.flotilla.io/commit-subject": "make it " + revisions[n]},
				})
			}
		}
		return r
	}
	type texts struct{ With, Changed string }
	for name, tc := range map[string]struct {
		before, after *sourcev1.GitRepository
		want          texts
	}{
		"nothing is included":    {of(""), of(""), texts{}},
		"it is as it was":        {of("base", "a"), of("base", "a"), texts{With: "base main@sha1:aaaaaaaa"}},
		"it is another one":      {of("base", "a"), of("base", "b"), texts{"base main@sha1:bbbbbbbb", "the included base is at main@sha1:bbbbbbbb 'make it b'"}},
		"one of two is":          {of("base lib", "a", "c"), of("base lib", "a", "d"), texts{"base main@sha1:aaaaaaaa, lib main@sha1:dddddddd", "the included lib is at main@sha1:dddddddd 'make it d'"}},
		"both are":               {of("base lib", "a", "c"), of("base lib", "b", "d"), texts{"base main@sha1:bbbbbbbb, lib main@sha1:dddddddd", "the included base is at main@sha1:bbbbbbbb 'make it b', and lib at main@sha1:dddddddd 'make it d'"}},
		"it is new":              {of(""), of("base", "a"), texts{"base main@sha1:aaaaaaaa", "the included base is at main@sha1:aaaaaaaa 'make it a'"}},
		"it is gone":             {of("base", "a"), of(""), texts{}},
		"it is there twice":      {of("base base", "a", "a"), of("base base", "b", "b"), texts{"base main@sha1:bbbbbbbb", "the included base is at main@sha1:bbbbbbbb 'make it b'"}},
		"a status that is wrong": {of("base lib"), of("base lib", "a"), texts{"base main@sha1:aaaaaaaa", "the included base is at main@sha1:aaaaaaaa 'make it a'"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, texts{inclusion.Text(tc.after), inclusion.Changed(tc.before, tc.after)}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestOrigin: a file is of the include that leads to the folder nearest to it.
func TestOrigin(t *testing.T) {
	r := &sourcev1.GitRepository{}
	for _, include := range []sourcev1.GitRepositoryInclude{
		{GitRepositoryRef: meta.LocalObjectReference{Name: "base"}, FromPath: "deploy", ToPath: "vendor"},
		{GitRepositoryRef: meta.LocalObjectReference{Name: "db"}, ToPath: "./vendor/db/"},
		{GitRepositoryRef: meta.LocalObjectReference{Name: "one"}, FromPath: "a/one.yaml", ToPath: "one.yaml"},
		{GitRepositoryRef: meta.LocalObjectReference{Name: "plain"}},
		{GitRepositoryRef: meta.LocalObjectReference{Name: "all"}, ToPath: "."},
	} {
		r.Spec.Include = append(r.Spec.Include, include)
		r.Status.ObservedInclude = append(r.Status.ObservedInclude, include)
		r.Status.IncludedArtifacts = append(r.Status.IncludedArtifacts, &meta.Artifact{Revision: "main@sha1:" + include.GitRepositoryRef.Name})
	}
	type found struct{ By, Revision, There string }
	for file, want := range map[string]found{
		"vendor/web.yaml":     {"base", "main@sha1:base", "deploy/web.yaml"},
		"vendor/db/a/db.yaml": {"db", "main@sha1:db", "a/db.yaml"},
		"vendor/dbs/db.yaml":  {"base", "main@sha1:base", "deploy/dbs/db.yaml"},
		"one.yaml":            {"one", "main@sha1:one", "a/one.yaml"},
		"plain/x.yaml":        {"plain", "main@sha1:plain", "x.yaml"},
		"app/web.yaml":        {}, // of the repository itself, or of the one that is all over it
		"vendored/web.yaml":   {},
	} {
		var got found
		if by, of, there := inclusion.Origin(r, file); by != nil {
			got = found{by.GitRepositoryRef.Name, of.Revision, there}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
	r.Status.IncludedArtifacts = nil
	if by, _, _ := inclusion.Origin(r, "plain/x.yaml"); by != nil {
		t.Error("there is an origin before anything was included")
	}
}
