package crds

import (
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestTheExampleOfAReview: an API server takes what examples/review shows.
func TestTheExampleOfAReview(t *testing.T) {
	content, err := os.ReadFile("../../examples/review/review.yaml")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for text := range strings.SplitSeq(string(content), "\n---\n") {
		var object struct {
			Kind string
			Spec map[string]any
		}
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			t.Fatal(err)
		}
		for name, crd := range byName(t) {
			if crd.Spec.Names.Kind != object.Kind {
				continue
			}
			seen++
			spec, err := yaml.Marshal(object.Spec)
			if err != nil {
				t.Fatal(err)
			}
			if faults := answer(t, crd, string(spec)); len(faults) > 0 {
				t.Errorf("%s: %q", name, faults)
			}
		}
	}
	if seen != 3 {
		t.Errorf("%d objects are of our definitions, want 3", seen)
	}
}
