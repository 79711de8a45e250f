package agents

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
)

type heard []string

func (h *heard) Event(_ runtime.Object, _, reason, message string) {
	*h = append(*h, reason+": "+message)
}

// TestReport: what an agent says and nobody approved is told once each time that it
// changes, and not at a start.
func TestReport(t *testing.T) {
	of := func(asked string) *clusterv1alpha1.Cluster {
		c := &clusterv1alpha1.Cluster{}
		c.Name = "north"
		if asked != "" {
			c.Annotations = map[string]string{identity.RequestedAnnotation: asked}
		}
		return c
	}
	at := func(endpoint, proxy string, mode clusterv1alpha1.ClusterSyncMode) *clusterv1alpha1.Cluster {
		c := of("")
		c.Spec.APIEndpoint, c.Spec.ProxyURL, c.Spec.SyncMode = endpoint, proxy, mode
		return c
	}
	moved := at("https://b", "", clusterv1alpha1.Pull)
	moved.Spec.InsecureSkipTLSVerification = true
	moved.Annotations = map[string]string{clusterv1alpha1.TLSServerNameAnnotation: "a"}
	const eu = `{"region":"eu"}`
	reported := []string{`PropertiesNotApproved: its agent says region "eu", which does not count until it is approved: ` +
		`flotilla patch cluster north --type merge -p '{"spec":{"region":"eu"}}'`}
	cases := map[string]struct {
		before, after *clusterv1alpha1.Cluster
		atStart       bool
		want          []string
	}{
		"a cluster that says nothing":   {after: of("")},
		"one that registers and says":   {after: of(eu), want: reported},
		"one that was there at a start": {after: of(eu), atStart: true},
		"one that says it now":          {before: of(""), after: of(eu), want: reported},
		"one that said it before":       {before: of(eu), after: of(eu)},
		"one that was approved":         {before: of(eu), after: of("")},
		"one that nobody can read":      {before: of(""), after: of("{")},
		"one that is reached elsewhere": {before: at("https://a", "", clusterv1alpha1.Pull), after: moved, want: []string{`EndpointChanged: it is reached at "https://b" as "a", without a look at its certificate; before: "https://a"`}},
		"one that is reached through a proxy": {
			before: at("https://a", "", clusterv1alpha1.Pull), after: at("https://a", "http://user:secret@p:3128", clusterv1alpha1.Pull),
			want: []string{`EndpointChanged: it is reached at "https://a" through the proxy "p:3128"; before: "https://a"`},
		},
		"one that says where it is reached":              {before: at("", "", clusterv1alpha1.Pull), after: at("https://a", "", clusterv1alpha1.Pull)},
		"one in push mode, which an administrator moves": {before: at("https://a", "", clusterv1alpha1.Push), after: at("https://b", "", clusterv1alpha1.Push)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got heard
			reports := reporter{events: &got}.clusterEvents()
			if tc.before == nil {
				reports.Create(t.Context(), event.CreateEvent{Object: tc.after, IsInInitialList: tc.atStart}, nil)
			} else {
				reports.Update(t.Context(), event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}, nil)
			}
			if len(got) != len(tc.want) || len(got) > 0 && got[0] != tc.want[0] {
				t.Errorf("told %q, want %q", got, tc.want)
			}
		})
	}
}
