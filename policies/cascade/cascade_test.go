package cascade_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/policies/cascade"
)

func TestCounts(t *testing.T) {
	owned := func(apiVersion, kind string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: "o", OwnerReferences: []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "owner", UID: "u"}}}
	}
	cases := map[string]struct {
		kind schema.GroupKind
		meta metav1.ObjectMeta
		all  bool // of one kind, not of a namespace
		want bool
	}{
		"somebody's Deployment":                     {kind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, meta: metav1.ObjectMeta{Name: "legacy"}, want: true},
		"data that a StatefulSet has left":          {kind: schema.GroupKind{Kind: "PersistentVolumeClaim"}, meta: metav1.ObjectMeta{Name: "data-db-0"}, want: true},
		"what goes anyway":                          {kind: schema.GroupKind{Kind: "ConfigMap"}, meta: metav1.ObjectMeta{Name: "leaves"}},
		"what is being deleted":                     {kind: schema.GroupKind{Kind: "ConfigMap"}, meta: metav1.ObjectMeta{Name: "c", DeletionTimestamp: &metav1.Time{}}},
		"the account that every namespace has":      {kind: schema.GroupKind{Kind: "ServiceAccount"}, meta: metav1.ObjectMeta{Name: "default"}},
		"another account":                           {kind: schema.GroupKind{Kind: "ServiceAccount"}, meta: metav1.ObjectMeta{Name: "robot"}, want: true},
		"the CA that every namespace has":           {kind: schema.GroupKind{Kind: "ConfigMap"}, meta: metav1.ObjectMeta{Name: "kube-root-ca.crt"}},
		"a Secret of that name":                     {kind: schema.GroupKind{Kind: "Secret"}, meta: metav1.ObjectMeta{Name: "kube-root-ca.crt"}, want: true},
		"an account's token":                        {kind: schema.GroupKind{Kind: "Secret"}, meta: metav1.ObjectMeta{Name: "t", Annotations: map[string]string{"kubernetes.io/service-account.name": "robot"}}},
		"an Event":                                  {kind: schema.GroupKind{Kind: "Event"}, meta: metav1.ObjectMeta{Name: "e"}},
		"a kind of somebody's that is called Event": {kind: schema.GroupKind{Group: "example.com", Kind: "Event"}, meta: metav1.ObjectMeta{Name: "e"}, want: true},
		"a Lease":                                      {kind: schema.GroupKind{Group: "coordination.k8s.io", Kind: "Lease"}, meta: metav1.ObjectMeta{Name: "leader"}},
		"what something in the namespace owns":         {kind: schema.GroupKind{Kind: "Pod"}, meta: owned("apps/v1", "ReplicaSet")},
		"what something outside of the namespace owns": {kind: schema.GroupKind{Kind: "Pod"}, meta: owned("v1", "Node"), want: true},
		"what something of an unknown kind owns":       {kind: schema.GroupKind{Kind: "Pod"}, meta: owned("example.com/v1", "Gone"), want: true},
		"of a kind that goes, also what somebody owns": {kind: schema.GroupKind{Group: "example.com", Kind: "Widget"}, meta: owned("apps/v1", "ReplicaSet"), all: true, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			within := cascade.Within{
				Namespaced: func(_, kind string) bool { return kind == "ReplicaSet" },
				Leaves:     func(o metav1.Object) bool { return o.GetName() == "leaves" },
				Kind:       tc.all,
			}
			if got := cascade.Counts(tc.kind, &tc.meta, within); got != tc.want {
				t.Errorf("counts: %v, want %v", got, tc.want)
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	for want, titles := range map[string][]string{
		"":                       nil,
		"a":                      {"a"},
		"a and b":                {"a", "b"},
		"a, b, c, d and e":       {"a", "b", "c", "d", "e"},
		"a, b, c, d, e and more": {"a", "b", "c", "d", "e", "f"},
	} {
		if got := cascade.Describe(titles); got != want {
			t.Errorf("%v: %q, want %q", titles, got, want)
		}
	}
	widget := &metav1.ObjectMeta{Namespace: "shop", Name: "w"}
	if got := cascade.Title("Widget", widget, cascade.Within{}) + ", " + cascade.Title("Widget", widget, cascade.Within{Kind: true}); got != "Widget w, Widget shop/w" {
		t.Error(got)
	}
}
