package eviction_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/eviction"
)

// TestReport checks what is recorded of an Event about what cannot leave, so that clusters that come and go do not have
// the same one made over and over.
func TestReport(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	lately, before := noon.Add(-time.Minute), noon.Add(-2*eviction.ReportInterval)
	old := func(at time.Time) *eviction.Report { return eviction.NewReport("web in west", at) }
	for name, tc := range map[string]struct {
		was  *eviction.Report
		is   eviction.Unplaced
		want *eviction.Report
	}{
		"nothing was reported, and nothing is to be":       {},
		"the first is reported":                            {is: eviction.Unplaced{Of: "web in west"}, want: old(noon)},
		"the same, a minute later, was over in between":    {was: old(lately), is: eviction.Unplaced{Of: "web in west"}, want: old(lately)},
		"the same, hours later, was over in between":       {was: old(before), is: eviction.Unplaced{Of: "web in west"}, want: old(noon)},
		"the same, hours later, has lasted":                {was: old(before), is: eviction.Unplaced{Of: "web in west", Before: true}, want: old(before)},
		"another one is reported at once":                  {was: old(lately), is: eviction.Unplaced{Of: "web in east", Before: true}, want: eviction.NewReport("web in east", noon)},
		"it is over for a minute, and may begin again":     {was: old(lately), want: old(lately)},
		"it is over for hours":                             {was: old(before)},
		"it is over, as the template has left the cluster": {was: old(lately), is: eviction.Unplaced{Leaves: true}},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.was.Next(tc.is, noon)
			if diff := cmp.Diff(fields(tc.want), fields(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if same := fields(got) == fields(tc.was); got.Equal(tc.was) != same {
				t.Errorf("Equal of %s and %s is %v", fields(got), fields(tc.was), !same)
			}
		})
	}
	if at := old(noon.Add(time.Millisecond)).At.Time; !at.Equal(noon) {
		t.Errorf("it is recorded at %v, want whole seconds", at)
	}
}

// fields is the content of a report. go-cmp goes by its Equal, which is tested here.
func fields(r *eviction.Report) string {
	if r == nil {
		return "none"
	}
	return r.Of + " at " + r.At.Format(time.RFC3339Nano)
}
