package omissions_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-io/flotilla/policies/omissions"
)

func TestWhatIsNotApplied(t *testing.T) {
	claim := func(metadata map[string]any) map[string]any {
		metadata["name"] = "data"
		return map[string]any{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": map[string]any{"storageClassName": "fast"}}
	}
	for name, tc := range map[string]struct {
		given map[string]any
		want  map[string]any
		paths []string
	}{
		"owners of another cluster": {
			given: claim(map[string]any{"labels": map[string]any{"a": "b"}, "ownerReferences": []any{map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "1"}}}),
			want:  claim(map[string]any{"labels": map[string]any{"a": "b"}}),
			paths: []string{"metadata.ownerReferences"},
		},
		"owners that cannot be read": {
			given: claim(map[string]any{"ownerReferences": "db"}), want: claim(map[string]any{}), paths: []string{"metadata.ownerReferences"},
		},
		"marks of the control plane": {
			given: claim(map[string]any{
				"labels":      map[string]any{"propagationpolicy.karmada.io/permanent-id": "1", "resourcetemplate.karmada.io/claimed-by": "Lane"},
				"annotations": map[string]any{"propagation.flotilla.io/waits-for-change-of": "x", "work.karmada.io/name": "data", "work.karmada.io/conflict-resolution": "overwrite"},
			}),
			want: claim(map[string]any{
				"labels":      map[string]any{"resourcetemplate.karmada.io/claimed-by": "Lane"},
				"annotations": map[string]any{"work.karmada.io/conflict-resolution": "overwrite"},
			}),
			paths: []string{"metadata.labels[propagationpolicy.karmada.io/permanent-id]", "metadata.annotations[work.karmada.io/name]", "metadata.annotations[propagation.flotilla.io/waits-for-change-of]"},
		},
		"the account of a token, elsewhere": {
			given: map[string]any{"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token", "metadata": map[string]any{"annotations": map[string]any{"kubernetes.io/service-account.uid": "1"}}},
			want:  map[string]any{"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token", "metadata": map[string]any{}},
			paths: []string{"metadata.annotations[kubernetes.io/service-account.uid]"},
		},
		"the id of a policy": {
			given: map[string]any{"apiVersion": "policy.karmada.io/v1alpha1", "metadata": map[string]any{"labels": map[string]any{"propagationpolicy.karmada.io/permanent-id": "1"}}},
			want:  map[string]any{"apiVersion": "policy.karmada.io/v1alpha1", "metadata": map[string]any{"labels": map[string]any{"propagationpolicy.karmada.io/permanent-id": "1"}}},
		},
		"what is all an author's": {given: claim(map[string]any{"labels": map[string]any{"a": "b"}}), want: claim(map[string]any{"labels": map[string]any{"a": "b"}})},
		"no metadata":             {given: map[string]any{"kind": "ConfigMap"}, want: map[string]any{"kind": "ConfigMap"}},
		"metadata that is none":   {given: map[string]any{"metadata": "x"}, want: map[string]any{"metadata": "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			var paths []string
			for _, o := range omissions.Of(tc.given) {
				paths = append(paths, o.Path)
			}
			removed := omissions.Remove(&unstructured.Unstructured{Object: tc.given})
			if diff := cmp.Diff(tc.paths, paths); diff != "" || len(removed) != len(paths) {
				t.Errorf("omissions (-want +got):\n%s; %d removed", diff, len(removed))
			}
			if diff := cmp.Diff(tc.want, tc.given); diff != "" {
				t.Errorf("what is left (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMessagesAboutManyObjects(t *testing.T) {
	var list omissions.List
	if text := list.String(); text != "" {
		t.Errorf("nothing is %q", text)
	}
	for _, object := range []string{"a", "b", "c", "d", "e"} {
		list.Add(object, omissions.Omission{Path: "x", Why: "it is written by others"})
	}
	list.Add("b", omissions.Omission{Path: "y", Why: "it is not served"})
	if diff := cmp.Diff("x of a, b, c and 2 more: it is written by others; y of b: it is not served", list.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}

// TestWhole: what installs Flux, or defines a kind that the control plane has, is left out where a repository is bootstrapped.
func TestWhole(t *testing.T) {
	const namespace = "flux-system"
	object := func(apiVersion, kind, name string, labels map[string]any) *unstructured.Unstructured {
		metadata := map[string]any{"name": name}
		if labels != nil {
			metadata["labels"] = labels
		}
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}}
	}
	flux := func(instance string) map[string]any {
		return map[string]any{"app.kubernetes.io/part-of": "flux", "app.kubernetes.io/instance": instance}
	}
	for name, tc := range map[string]struct {
		obj  *unstructured.Unstructured
		want bool
	}{
		"a controller of Flux":                  {object("apps/v1", "Deployment", "source-controller", flux(namespace)), true},
		"one that another namespace is for":     {object("apps/v1", "Deployment", "source-controller", flux("members")), false},
		"a Deployment of somebody":              {object("apps/v1", "Deployment", "web", map[string]any{"app.kubernetes.io/instance": namespace}), false},
		"the namespace of Flux":                 {object("v1", "Namespace", namespace, flux(namespace)), true},
		"the same of somebody":                  {object("v1", "Namespace", namespace, nil), false},
		"another namespace that Flux labels":    {object("v1", "Namespace", "tenants", flux(namespace)), false},
		"a definition that we have":             {object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "kustomizations.kustomize.toolkit.fluxcd.io", flux(namespace)), true},
		"a definition for members, of Flux too": {object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "helmreleases.helm.toolkit.fluxcd.io", flux(namespace)), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := omissions.Whole(tc.obj, namespace); got != tc.want {
				t.Errorf("left out = %v, want %v", got, tc.want)
			}
		})
	}
}
