package cascade_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-io/flotilla/policies/cascade"
)

// TestRemaining: what keeps a namespace comes first, each thing once.
func TestRemaining(t *testing.T) {
	left := corev1.NamespaceCondition{Type: corev1.NamespaceContentRemaining, Status: corev1.ConditionTrue, Message: "deployments.apps has 1 resource instances"}
	for name, tc := range map[string]struct {
		says []corev1.NamespaceCondition
		want string
	}{
		"nothing":             {},
		"that all is well":    {says: []corev1.NamespaceCondition{{Type: corev1.NamespaceDeletionDiscoveryFailure, Status: corev1.ConditionFalse, Message: "discovered"}}},
		"what is left":        {says: []corev1.NamespaceCondition{left}, want: left.Message},
		"the same twice":      {says: []corev1.NamespaceCondition{left, left}, want: left.Message},
		"why it is not gone":  {says: []corev1.NamespaceCondition{{Status: corev1.ConditionTrue, Message: "Failed to delete all resource types, 2 remaining: protected"}, left}, want: "protected; " + left.Message},
		"a text of its own":   {says: []corev1.NamespaceCondition{{Status: corev1.ConditionTrue, Message: "Failed to delete"}}, want: "Failed to delete"},
		"an empty one of two": {says: []corev1.NamespaceCondition{{Status: corev1.ConditionTrue}, left}, want: left.Message},
	} {
		t.Run(name, func(t *testing.T) {
			if got := cascade.Remaining(&corev1.Namespace{Status: corev1.NamespaceStatus{Conditions: tc.says}}); got != tc.want {
				t.Errorf("it says %q, want %q", got, tc.want)
			}
		})
	}
}

// TestHeld: finalizers are named in the order in which they stand, and none hold nothing.
func TestHeld(t *testing.T) {
	for name, tc := range map[string]struct {
		finalizers []string
		want       string
	}{
		"nothing": {},
		"one":     {[]string{"example.com/b"}, "kept by its finalizers: example.com/b"},
		"two":     {[]string{"example.com/b", "example.com/a"}, "kept by its finalizers: example.com/b, example.com/a"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := cascade.BlockedBy(tc.finalizers); got != tc.want {
				t.Errorf("it says %q, want %q", got, tc.want)
			}
		})
	}
}

// TestHeldByKind: what is left of a kind is what keeps its definition, whose own finalizer
// only says so.
func TestHeldByKind(t *testing.T) {
	const cleanup = "customresourcecleanup.apiextensions.k8s.io"
	for name, tc := range map[string]struct {
		left, finalizers []string
		want             string
	}{
		"nothing is left":              {nil, []string{cleanup}, "kept by its finalizers: " + cleanup},
		"nothing keeps it":             {nil, nil, ""},
		"one is left":                  {[]string{"Boat shop/a"}, []string{cleanup}, "kept by what is left of its kind: Boat shop/a"},
		"two are left":                 {[]string{"Boat shop/a", "Boat shop/b"}, []string{cleanup}, "kept by what is left of its kind: Boat shop/a and Boat shop/b"},
		"many are left":                {[]string{"1", "2", "3", "4", "5", "6"}, []string{cleanup}, "kept by what is left of its kind: 1, 2, 3, 4, 5 and more"},
		"somebody holds it, too":       {[]string{"Boat shop/a"}, []string{"example.com/a", cleanup, "example.com/b"}, "kept by what is left of its kind: Boat shop/a; kept by its finalizers: example.com/a, example.com/b"},
		"somebody holds it, none left": {nil, []string{"example.com/a", cleanup}, "kept by its finalizers: example.com/a, " + cleanup},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(tc.finalizers)
			if got := cascade.BlockedByKind(tc.left, tc.finalizers); got != tc.want || !slices.Equal(before, tc.finalizers) {
				t.Errorf("it says %q, want %q", got, tc.want)
			}
		})
	}
}

// TestBlocking: what BlockedBy says can be read again, also where it stands in a message, and no other text is taken for it.
func TestBlocking(t *testing.T) {
	for name, tc := range map[string]struct {
		text     string
		says     bool
		blocking []string
	}{
		"nothing":               {},
		"of finalizers":         {cascade.BlockedBy([]string{"example.com/b", "example.com/a"}), true, []string{"example.com/b", "example.com/a"}},
		"of a kind":             {cascade.BlockedByKind([]string{"Boat shop/a"}, nil), true, nil},
		"within a message":      {"Namespace/shop (" + cascade.BlockedBy([]string{"example.com/a"}) + ")", true, nil},
		"which just takes time": {"still being deleted: Namespace/shop", false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := cascade.SaysWhat(tc.text); got != tc.says {
				t.Errorf("it says what keeps the object: %t, want %t", got, tc.says)
			}
			if got := cascade.Blocking(tc.text); !slices.Equal(got, tc.blocking) {
				t.Errorf("it names %v, want %v", got, tc.blocking)
			}
		})
	}
}
