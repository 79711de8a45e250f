package builder

import (
	"context"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/build"
)

// held are artifacts, by digest.
type held map[string]artifact.Files

func (h held) Owns(string, string) bool { return true }

func (h held) Open(_ context.Context, digest string) (artifact.Files, error) { return h[digest], nil }

// TestSame: an artifact is the same as the one that was applied where it holds the same of what is read. Before anything
// is applied there is none: what a Kustomization has only just built is new, and others may have to wait for it.
func TestSame(t *testing.T) {
	files := func(config, other string) artifact.Files {
		return artifact.Files{
			"app/config.yaml": artifact.File{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + config + "}\n")},
			"other.txt":       artifact.File{Data: []byte(other)},
		}
	}
	artifacts := held{"one": files("a", "1"), "two": files("a", "2"), "three": files("b", "2")}
	for name, tc := range map[string]struct {
		built    []string
		asks, of string
		want     bool
	}{
		"nothing was built":                      {nil, "one", "one", false},
		"it is the one that is applied":          {[]string{"one"}, "one", "one", true},
		"it changes other files":                 {[]string{"one"}, "two", "one", true},
		"it changes what is read":                {[]string{"one"}, "three", "one", false},
		"it is built already, but not applied":   {[]string{"one", "three"}, "three", "one", false},
		"nothing is applied, and it is built":    {[]string{"one"}, "one", "", false},
		"nothing is applied, and another is":     {[]string{"one"}, "two", "", false},
		"nothing is applied, and nothing built":  {nil, "one", "", false},
		"it is not known what was applied":       {[]string{"one"}, "one", "nosuch", false},
		"what was built last was the one before": {[]string{"three", "one"}, "two", "one", true},
	} {
		t.Run(name, func(t *testing.T) {
			b := New(artifacts, build.New(build.Limits{}), Options{})
			in := Input{Kustomization: &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop", Generation: 1}, Spec: kustomizev1.KustomizationSpec{Path: "./app"}}, Keep: true}
			for _, digest := range tc.built {
				in.Digest = digest
				if _, err := b.Build(t.Context(), in); err != nil {
					t.Fatal(err)
				}
			}
			in.Digest = tc.asks
			if got, err := b.Same(t.Context(), in, tc.of); err != nil || got != tc.want {
				t.Errorf("the same: %t, want %t: %v", got, tc.want, err)
			}
		})
	}
}

// TestSameVariables: what is applied with other values of variables is not the same, whatever the files hold.
func TestSameVariables(t *testing.T) {
	config := func(color string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "vars"}, Data: map[string]string{"color": color}}
	}
	file := artifact.File{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {color: \"${color}\"}\n")}
	artifacts := held{"one": {"app/config.yaml": file}, "two": {"app/config.yaml": file, "other.txt": {}}}
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop", Generation: 1}, Spec: kustomizev1.KustomizationSpec{
		Path: "./app", PostBuild: &kustomizev1.PostBuild{SubstituteFrom: []kustomizev1.SubstituteReference{{Kind: "ConfigMap", Name: "vars"}}},
	}}
	for name, tc := range map[string]struct {
		now  client.Reader
		want bool
	}{
		"they have the same values": {fake.NewClientBuilder().WithObjects(config("blue")).Build(), true},
		"one has another value":     {fake.NewClientBuilder().WithObjects(config("red")).Build(), false},
		"they are gone":             {fake.NewClientBuilder().Build(), false},
		"nobody is asked":           {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := New(artifacts, build.New(build.Limits{}), Options{})
			in := Input{Kustomization: ks, Keep: true, Digest: "one", As: fake.NewClientBuilder().WithObjects(config("blue")).Build()}
			if _, err := b.Build(t.Context(), in); err != nil {
				t.Fatal(err)
			}
			in.Digest, in.As = "two", tc.now
			if got, err := b.Same(t.Context(), in, "one"); err != nil || got != tc.want {
				t.Errorf("the same: %t, want %t: %v", got, tc.want, err)
			}
		})
	}
}
