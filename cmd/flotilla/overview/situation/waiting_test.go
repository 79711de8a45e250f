package situation

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
)

func TestDeletionsThatWaitAreShown(t *testing.T) {
	waits := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-east", Name: "shop-7b9d"}}
	waits.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkDeletionBlocked, Status: metav1.ConditionTrue, Reason: workv1alpha1.WorkHoldsOthersReason, Message: "Namespace shop holds ConfigMap legacy"}}
	s := NewSurvey(time.Unix(0, 0), "")
	s.Work(waits)
	s.Work(&workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-east", Name: "goes"}})
	want := []Problem{{
		State: Failed, Kind: "Work", Namespace: "karmada-es-east", Name: "shop-7b9d", Clusters: []string{"east"}, Message: "Namespace shop holds ConfigMap legacy",
		Next: "see that nobody misses it, then: flotilla kubectl annotate work -n karmada-es-east shop-7b9d propagation.flotilla.io/allow-cascade=true",
	}}
	if diff := cmp.Diff(want, s.Fleet().Problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// TestForeignTextObeysNothing: what an agent or a member says of itself, and what tenants
// write into their objects, is text, and nothing that a terminal would do.
func TestForeignTextObeysNothing(t *testing.T) {
	text := func(said string, wide bool) string {
		var out strings.Builder
		f := Fleet{
			Clusters: []Cluster{{
				Name: "north", Version: said, Mode: said, Provider: said, Region: said, CPU: said, Memory: said, Message: said,
				Taints: []string{said},
			}},
			Sources:        []Source{{Name: "shop", Revision: said, URL: said}},
			Kustomizations: []Kustomization{{Name: "shop", Revision: said, Source: said, Path: said, Message: said}},
			Problems:       []Problem{{Kind: "Kustomization", Name: "shop", Message: said, Symptom: said, Next: said}},
			Notes:          []Note{{Kind: "Kustomization", Name: "shop", Message: said, Next: said}},
		}
		if err := f.Text(&out, TextOptions{Wide: wide}); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for _, wide := range []bool{false, true} {
		got := text("\x1b[2J\x1b[HAll is ready\n\x1b[8m", wide)
		if strings.Contains(got, "\x1b") || strings.Count(got, "\n") != strings.Count(text("plain", wide), "\n") {
			t.Errorf("wide %t: %q", wide, got)
		}
	}
}

// TestALongVersionTakesNoRoom: whatever a member calls its version, the table is as
// wide as people can read.
func TestALongVersionTakesNoRoom(t *testing.T) {
	for _, wide := range []bool{false, true} {
		var out strings.Builder
		f := Fleet{Clusters: []Cluster{{Name: "north", Version: strings.Repeat("v", 5000)}}}
		if err := f.Text(&out, TextOptions{Wide: wide}); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); !strings.Contains(got, strings.Repeat("v", 40)+"…") || len(got) > 1000 {
			t.Errorf("wide %t: %.500s", wide, got)
		}
	}
}

// TestWhenAnAgentWasHeard: one that says that its cluster is well was heard, also before
// its first sign of life. One that says that its cluster is away is heard all the same.
func TestWhenAnAgentWasHeard(t *testing.T) {
	now := time.Unix(1000, 0)
	heard := metav1.NewTime(now.Add(-time.Minute))
	for _, tc := range []struct {
		want string
		c    Cluster
	}{
		{"-", Cluster{Mode: "Push", State: Ready}},
		{"heard just now", Cluster{Mode: "Pull", State: Ready}},
		{"never heard", Cluster{Mode: "Pull", State: Failed}},
		{"heard 60s ago", Cluster{Mode: "Pull", State: Ready, Heard: &heard}},
		{"heard 60s ago", Cluster{Mode: "Pull", State: Failed, Reason: "ClusterNotReachable", Heard: &heard}},
		{"silent for 60s", Cluster{Mode: "Pull", State: Failed, Reason: "ClusterStatusUnknown", Heard: &heard}},
	} {
		if got := tc.c.agent(now); got != tc.want {
			t.Errorf("%+v: %q, want %q", tc.c, got, tc.want)
		}
	}
}

// TestNarrowScreen: what does not fit into a line of a screen goes on below it; a command
// stays whole.
func TestNarrowScreen(t *testing.T) {
	f := Fleet{Problems: []Problem{{State: Failed, Kind: "Cluster", Name: "east", Message: strings.TrimSpace(strings.Repeat("word ", 12)), Next: strings.TrimSpace(strings.Repeat("command ", 8))}}}
	var out strings.Builder
	if err := f.Text(&out, TextOptions{Width: 50}); err != nil {
		t.Fatal(err)
	}
	_, said, _ := strings.Cut(out.String(), "NOT READY\n")
	want := `   1  Cluster east: word word word word word word
      word word word word word word
      next: command command command command command command command command
`
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
