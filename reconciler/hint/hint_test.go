package hint_test

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/hint"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

func TestWhichOneIsMeant(t *testing.T) {
	source := func(namespace, name string) client.Object {
		return &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	all := []client.Object{source("team", "fleet"), source("team", "charts"), source("team", "stage-1"), source("other", "shop")}
	for name, tc := range map[string]struct {
		namespace string // that is written; empty: the own one
		written   string
		but       []string
		want      string
		refused   bool
	}{
		"a letter is missing":                   {written: "flet", want: " (did you mean fleet?)"},
		"two letters are swapped":               {written: "flete", want: " (did you mean fleet?)"},
		"the one that is near is not meant":     {written: "flet", but: []string{"fleet"}},
		"another number is another one":         {written: "stage-2"},
		"a letter beside the number is wrong":   {written: "stagf-1", want: " (did you mean stage-1?)"},
		"none is near":                          {written: "podinfo"},
		"one is near in another namespace":      {written: "shpo"},
		"one has the name in another one":       {written: "shop"},
		"another namespace is asked for":        {namespace: "other", written: "shpo"},
		"it is longer than any name":            {written: strings.Repeat("a", 254)},
		"they cannot be listed, and that is it": {written: "flet", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(all...).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if tc.refused {
						return errors.New("no")
					}
					return c.List(ctx, list, opts...)
				},
			}).Build()
			of := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app"}}
			key := client.ObjectKey{Namespace: cmp.Or(tc.namespace, "team"), Name: tc.written}
			if got := propagation.DidYouMean(hint.Name(t.Context(), hub, &sourcev1.GitRepositoryList{}, of, key, tc.but...)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestWhichDependencyIsMeant: what is named already is not.
func TestWhichDependencyIsMeant(t *testing.T) {
	ks := func(namespace, name string, on ...kustomizev1.DependencyReference) *kustomizev1.Kustomization {
		return &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: kustomizev1.KustomizationSpec{DependsOn: on}}
	}
	shop := ks("team", "shopp", kustomizev1.DependencyReference{Name: "base"}, kustomizev1.DependencyReference{Name: "bases"}, kustomizev1.DependencyReference{Namespace: "other", Name: "infra"})
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(shop, ks("team", "base"), ks("team", "infra"), ks("other", "crds")).Build()
	for wanted, want := range map[client.ObjectKey]string{
		{Namespace: "team", Name: "bases"}:  "", // base is asked for besides
		{Namespace: "team", Name: "shop"}:   "", // itself
		{Namespace: "team", Name: "infrra"}: "infra",
		{Namespace: "other", Name: "crd"}:   "",
	} {
		if got := hint.Dependency(t.Context(), hub, shop, wanted); got != want {
			t.Errorf("by %s %q is meant, want %q", wanted, got, want)
		}
	}
}

// TestATenantLearnsNoNamesOfOthers: whatever it writes, it is answered with names of its own namespace alone.
func TestATenantLearnsNoNamesOfOthers(t *testing.T) {
	others := metav1.ObjectMeta{Namespace: "other", Name: "payments"}
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(&kustomizev1.Kustomization{ObjectMeta: others}, &sourcev1.GitRepository{ObjectMeta: others}).Build()
	of := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app"}}
	for _, namespace := range []string{"team", "other", ""} {
		key := client.ObjectKey{Namespace: namespace, Name: "payment"}
		for what, got := range map[string]string{
			"depends on":  hint.Dependency(t.Context(), hub, of, key),
			"applies":     hint.Source(t.Context(), hub, of, inventory.GitRepository(key)),
			"refers to":   hint.Name(t.Context(), hub, &kustomizev1.KustomizationList{}, of, key),
			"posts about": hint.Name(t.Context(), hub, &sourcev1.GitRepositoryList{}, of, key),
		} {
			if got != "" {
				t.Errorf("what %s %q is answered with %q", what, key, got)
			}
		}
	}
}
