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

// TestForeignTextObeysNothing: control sequences in what agents and members report, and in tenants'
// objects, do not reach the terminal.
func TestForeignTextObeysNothing(t *testing.T) {
	text := func(value string, wide bool) string {
		var out strings.Builder
		f := Fleet{
			Clusters: []Cluster{{
				Name: "north", Version: value, Mode: value, Provider: value, Region: value, CPU: value, Memory: value, Message: value,
				Taints: []string{value},
			}},
			Sources:        []Source{{Name: "shop", Revision: value, URL: value}},
			Kustomizations: []Kustomization{{Name: "shop", Revision: value, Source: value, Path: value, Message: value}},
			Problems:       []Problem{{Kind: "Kustomization", Name: "shop", Message: value, Symptom: value, Next: value}},
			Notes:          []Note{{Kind: "Kustomization", Name: "shop", Message: value, Next: value}},
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

// TestALongVersionTakesNoRoom: a member that reports a long version does not make the table
// too wide to read.
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

// TestWhenAnAgentWasHeard: an agent that reports a ready cluster was heard, also before it first
// renews its Lease. So was one that reports that its cluster does not answer.
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

// TestNarrowScreen: text that does not fit on a line continues on the next one; a command
// is not broken.
func TestNarrowScreen(t *testing.T) {
	f := Fleet{Problems: []Problem{{State: Failed, Kind: "Cluster", Name: "east", Message: strings.TrimSpace(strings.Repeat("word ", 12)), Next: strings.TrimSpace(strings.Repeat("command ", 8))}}}
	var out strings.Builder
	if err := f.Text(&out, TextOptions{Width: 50}); err != nil {
		t.Fatal(err)
	}
	_, notReady, _ := strings.Cut(out.String(), "NOT READY\n")
	want := `   1  Cluster east: word word word word word word
      word word word word word word
      next: command command command command command command command command
`
	if diff := cmp.Diff(want, notReady); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLongMessages: a message is cut where a terminal has no room for it, and in a pipe, which has no width, only where it
// is long beyond reading.
func TestLongMessages(t *testing.T) {
	of := func(n int) Fleet {
		return Fleet{Problems: []Problem{{State: Failed, Kind: "Cluster", Name: "east", Message: strings.Repeat("Q", n), Next: "look"}}, Notes: []Note{{Message: strings.Repeat("J", n), Next: "look"}}}
	}
	for name, tc := range map[string]struct {
		has, want int
		opts      TextOptions
	}{
		"a terminal":                 {has: 400, want: 160, opts: TextOptions{Width: 1000}},
		"a terminal, all":            {has: 400, want: 400, opts: TextOptions{Width: 1000, Wide: true}},
		"a pipe":                     {has: 400, want: 400},
		"a pipe, beyond reading":     {has: 4000, want: 999},
		"a pipe, all":                {has: 4000, want: 4000, opts: TextOptions{Wide: true}},
		"a terminal has room for it": {has: 160, want: 160, opts: TextOptions{Width: 1000}},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := of(tc.has).Text(&out, tc.opts); err != nil {
				t.Fatal(err)
			}
			if x, y := strings.Count(out.String(), "Q"), strings.Count(out.String(), "J"); x != tc.want || y != tc.want {
				t.Errorf("%d characters of a problem and %d of a note are shown, want %d", x, y, tc.want)
			}
		})
	}
}
