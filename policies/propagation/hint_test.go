package propagation_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-io/flotilla/policies/propagation"
)

// TestHintAmong checks which object is suggested for a name that does not exist.
func TestHintAmong(t *testing.T) {
	known := []types.NamespacedName{
		{Namespace: "shop", Name: "frontend"}, {Namespace: "shop", Name: "api-1"},
		{Namespace: "stage", Name: "backend"}, {Namespace: "live", Name: "backend"}, {Namespace: "live", Name: "fronten"},
	}
	for name, tc := range map[string]struct {
		namespace, name, want string
	}{
		"a letter is missing":                         {"shop", "fronend", " (did you mean frontend?)"},
		"another namespace has it":                    {"shop", "fronten", " (did you mean the one in live?)"},
		"several others have it":                      {"shop", "backend", " (did you mean the one in live?)"},
		"a number is another one":                     {"shop", "api-2", ""},
		"none is near":                                {"shop", "payments", ""},
		"what is near in another namespace is not it": {"mail", "fronend", ""},
		"a word that no name can be":                  {"shop", strings.Repeat("a", 254), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := propagation.HintAmong(types.NamespacedName{Namespace: tc.namespace, Name: tc.name}, known); got != tc.want {
				t.Errorf("says %q, want %q", got, tc.want)
			}
		})
	}
}
