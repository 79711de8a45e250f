package explain_test

import (
	"strings"
	"testing"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/explain"
)

// What is to be done next ends with a command that works when it is pasted into a
// shell, wherever one is.
func TestHintsCanBePasted(t *testing.T) {
	in := input(t)
	bind(t, &in)
	yes := true
	in.Binding.BindingSpec().Suspension = &workv1alpha2.Suspension{Scheduling: &yes}
	in.Binding.SetAnnotations(map[string]string{workv1alpha2.SchedulingDecisionAnnotation: "[]"})
	in.Works = []*workv1alpha1.Work{parse(t, `
metadata: {namespace: karmada-es-c-001, name: web}
status:
  conditions: [{type: Applied, status: "True", reason: AppliedSuccessful, message: ok}]
  manifestStatuses: [{health: Unhealthy}]
`, &workv1alpha1.Work{})}
	want := map[string]string{
		explain.ReasonSchedulingSuspended: "flotilla kubectl edit rb web-deployment -n shop",
		explain.ReasonUnreadableRecord:    "flotilla kubectl annotate rb web-deployment -n shop " + workv1alpha2.SchedulingDecisionAnnotation + "-",
		explain.ReasonUnhealthy:           "flotilla events --for deployment/web -n shop -C c-001",
	}
	got := map[string]string{}
	for _, p := range explain.Explain(in).Problems {
		got[p.Reason] = p.Next
	}
	for reason, command := range want {
		if !strings.HasSuffix(got[reason], ": "+command) {
			t.Errorf("%s: next is %q, want it to end with %q", reason, got[reason], command)
		}
	}
}
