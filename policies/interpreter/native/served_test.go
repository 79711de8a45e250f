package native_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter"
)

// TestServed checks that what serves a kind or an API is not shown as healthy before it does, and is never moved for that.
func TestServed(t *testing.T) {
	const yes, no = workv1alpha2.ResourceHealthy, workv1alpha2.ResourceUnhealthy
	definition := func(status string) string {
		return `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gadgets.example.com}, status: ` + status + `}`
	}
	api := func(status string) string {
		return `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.example.com}, status: ` + status + `}`
	}
	for name, tc := range map[string]struct {
		object string
		shown  workv1alpha2.ResourceHealth
		status string
	}{
		"a kind that is served":     {definition(`{conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "True"}]}`), yes, `{"conditions":[{"status":"True","type":"NamesAccepted"},{"status":"True","type":"Established"}]}`},
		"one whose name is taken":   {definition(`{conditions: [{type: NamesAccepted, status: "False"}, {type: Established, status: "False"}]}`), no, `{"conditions":[{"status":"False","type":"NamesAccepted"},{"status":"False","type":"Established"}],"resourceWaiting":true}`},
		"one that is just there":    {definition(`{acceptedNames: {kind: ""}}`), no, `{"acceptedNames":{"kind":""},"resourceWaiting":true}`},
		"an API that is served":     {api(`{conditions: [{type: Available, status: "True"}]}`), yes, `{"conditions":[{"status":"True","type":"Available"}]}`},
		"one that nobody serves":    {api(`{conditions: [{type: Available, status: "False"}]}`), no, `{"conditions":[{"status":"False","type":"Available"}],"resourceWaiting":true}`},
		"one that is not known yet": {api(`{}`), no, `{"resourceWaiting":true}`},
	} {
		t.Run(name, func(t *testing.T) {
			know, obj := interpreter.Native(), object(t, tc.object)
			if got, err := know.Health(obj); got != yes || err != nil {
				t.Errorf("health, for which it may be moved: %s, %v", got, err)
			}
			if got, err := know.Shown(obj); got != tc.shown || err != nil {
				t.Errorf("shown is %s, %v, want %s", got, err, tc.shown)
			}
			reported, err := know.ReflectStatus(obj)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.status, string(reported.Raw)); diff != "" {
				t.Errorf("reported (-want +got):\n%s", diff)
			}
		})
	}
}
