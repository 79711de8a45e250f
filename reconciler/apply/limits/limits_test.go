package limits_test

import (
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/reconciler/apply/lastgood"
	"github.com/flotilla-io/flotilla/reconciler/apply/limits"
)

// kustomization is one of a minute, with so many objects of ten bytes each.
func kustomization(namespace, name string, minute, objects int) *kustomizev1.Kustomization {
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC))}}
	ks.Status.Inventory = &kustomizev1.ResourceInventory{Entries: make([]kustomizev1.ResourceRef, objects)}
	ks.Status.History = meta.History{{Digest: "1"}}
	lastgood.Write(&ks.Status, lastgood.Record{Revision: "1", Artifact: "1", Objects: "1", Bytes: int64(10 * objects)})
	return ks
}

func TestLimits(t *testing.T) {
	old, next, last := kustomization("team", "old", 1, 2), kustomization("team", "b", 2, 3), kustomization("team", "c", 2, 0)
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithStatusSubresource().
		WithObjects(old, next, last, kustomization("other", "a", 0, 100), kustomization("flux-system", "a", 0, 100)).Build()
	applied := last.DeepCopy()
	applied.Status.LastAppliedRevision = "main@sha1:1"
	most := func(of tenancy.Limit, n int64) limits.Checker {
		return limits.New(hub, tenancy.Rules{PrivilegedNamespaces: []string{"flux-system"}, Limits: tenancy.Limits{of: n}})
	}
	size := func(objects int64) limits.Size { return limits.Size{Objects: objects, Bytes: 10 * objects} }
	cases := map[string]struct {
		err  error
		want string // of the message, up to what to do
	}{
		"two of three Kustomizations may be":       {most(tenancy.Kustomizations, 2).Kustomizations(t.Context(), next), ""},
		"the third may not":                        {most(tenancy.Kustomizations, 2).Kustomizations(t.Context(), last), "the namespace team would have 3 Kustomizations, and may have 2"},
		"one that has been applied stays":          {most(tenancy.Kustomizations, 2).Kustomizations(t.Context(), applied), ""},
		"a privileged namespace has no end":        {most(tenancy.Kustomizations, 0).Kustomizations(t.Context(), last), ""},
		"as many objects as there may be":          {most(tenancy.Objects, 7).Grow(t.Context(), last, size(2)), ""},
		"one more":                                 {most(tenancy.Objects, 6).Grow(t.Context(), last, size(2)), "the namespace team would have 7 objects of Kustomizations, and may have 6"},
		"one that shrinks, where there is no room": {most(tenancy.Objects, 1).Grow(t.Context(), next, size(2)), ""},
		"as many bytes as there may be":            {most(tenancy.ObjectSize, 70).Grow(t.Context(), last, size(2)), ""},
		"larger ones":                              {most(tenancy.ObjectSize, 69).Grow(t.Context(), last, size(2)), "the namespace team would have 70 bytes of objects of Kustomizations, and may have 69"},
		"smaller ones, where there is no room":     {most(tenancy.ObjectSize, 1).Grow(t.Context(), next, limits.Size{Objects: 5, Bytes: 29}), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if e := loop.As(tc.err, ""); e != nil {
				got = e.Error()
				if e.Class != loop.ClassWaiting || e.Reason != tenancy.ReasonLimitExceeded {
					t.Errorf("class %d, reason %s", e.Class, e.Reason)
				}
			}
			if len(got) < len(tc.want) || got[:len(tc.want)] != tc.want || tc.want == "" && got != "" {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}
