package inventory_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

func TestWithoutRegenerated(t *testing.T) {
	entries := func(text string) []inventory.Entry {
		var out []inventory.Entry
		for _, word := range strings.Fields(text) {
			parts := strings.Split(word, "/")
			out = append(out, inventory.Entry{ID: inventory.ID{GroupKind: schema.GroupKind{Kind: parts[0]}, Namespace: parts[1], Name: parts[2]}, Version: "v1"})
		}
		return out
	}
	for name, tc := range map[string]struct{ removed, desired, want string }{
		"another content":                        {"ConfigMap/shop/web-4hb598hktt Secret/shop/key-789f2mk5t6", "ConfigMap/shop/web-5k2t76g8mb Secret/shop/key-g2h4k5m6t7", ""},
		"one goes":                               {"ConfigMap/shop/web-4hb598hktt ConfigMap/shop/old-4hb598hktt", "ConfigMap/shop/web-5k2t76g8mb", "ConfigMap/shop/old-4hb598hktt"},
		"it gets a name without a hash":          {"ConfigMap/shop/web-4hb598hktt", "ConfigMap/shop/web", "ConfigMap/shop/web-4hb598hktt"},
		"it gets one":                            {"ConfigMap/shop/web", "ConfigMap/shop/web-4hb598hktt", "ConfigMap/shop/web"},
		"another kind":                           {"ConfigMap/shop/web-4hb598hktt", "Secret/shop/web-5k2t76g8mb", "ConfigMap/shop/web-4hb598hktt"},
		"another namespace":                      {"ConfigMap/shop/web-4hb598hktt", "ConfigMap/team/web-5k2t76g8mb", "ConfigMap/shop/web-4hb598hktt"},
		"what kustomize does not generate":       {"Service/shop/web-4hb598hktt", "Service/shop/web-5k2t76g8mb", "Service/shop/web-4hb598hktt"},
		"letters that no hash has":               {"ConfigMap/shop/web-production", "ConfigMap/shop/web-5k2t76g8mb", "ConfigMap/shop/web-production"},
		"it stays, and one of a content before":  {"ConfigMap/shop/web-4hb598hktt", "ConfigMap/shop/web-5k2t76g8mb ConfigMap/shop/more", ""},
		"what has the same beginning is another": {"ConfigMap/shop/web-more-4hb598hktt", "ConfigMap/shop/web-5k2t76g8mb", "ConfigMap/shop/web-more-4hb598hktt"},
	} {
		t.Run(name, func(t *testing.T) {
			got := inventory.WithoutRegenerated(entries(tc.removed), entries(tc.desired))
			if diff := cmp.Diff(len(entries(tc.want)), len(got)); diff != "" {
				t.Fatalf("%v (-want +got):\n%s", got, diff)
			}
			for i, e := range entries(tc.want) {
				if diff := cmp.Diff(e, got[i]); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}
