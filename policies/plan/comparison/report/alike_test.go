package report_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/flotilla-io/flotilla/policies/plan/comparison"
	"github.com/flotilla-io/flotilla/policies/plan/comparison/report"
)

// TestAlike: templates that move in the same way are named together, and one that moves otherwise is not.
func TestAlike(t *testing.T) {
	placement := func(name string, after int32) comparison.Placement {
		return comparison.Placement{
			Object: comparison.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name}, Why: "placement changed",
			Shifts: []comparison.Shift{{Cluster: "east", Before: ptr.To[int32](2), After: ptr.To(after)}},
		}
	}
	c := comparison.Comparison{Placements: []comparison.Placement{placement("a", 3), placement("b", 4), placement("c", 3)}}
	const text = "PLACEMENT\n" +
		"  Deployment shop/a and Deployment shop/c: placement changed\n    2 → 3 replicas  east\n" +
		"  Deployment shop/b: placement changed\n    2 → 4 replicas  east\n"
	_, got, _ := strings.Cut(report.Text(c, report.TextOptions{}), "\n\n")
	if diff := cmp.Diff(text, got); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	const row = "| `Deployment shop/a and Deployment shop/c` | 2 → 3 replicas |"
	if got := report.Markdown(c, report.MarkdownOptions{}); !strings.Contains(got, row) {
		t.Errorf("there is no %s in\n%s", row, got)
	}
}
