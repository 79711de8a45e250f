package placement_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/placement/framework"
	"github.com/flotilla-io/flotilla/policies/placement/plugins"
)

// TestRecordNamesThePlugins holds what a decision says of the plugins that were asked, and
// what somebody with the built-in ones makes of that.
func TestRecordNamesThePlugins(t *testing.T) {
	nobody := picky{}
	for name, tc := range map[string]struct {
		plugins       []framework.Plugin
		want, missing []string
		without       bool // TaintToleration is not asked
	}{
		"the built-in ones":              {},
		"the built-in ones by name":      {plugins: plugins.All()},
		"one more":                       {plugins: append(plugins.All(), nobody), want: []string{"Picky"}, missing: []string{"Picky"}},
		"another one for a built-in one": {plugins: append(framework.Select(plugins.All(), []string{"*", "-TaintToleration"}), nobody), want: []string{"Picky", "-TaintToleration"}, missing: []string{"Picky"}, without: true},
		"one less":                       {plugins: framework.Select(plugins.All(), []string{"*", "-TaintToleration"}), want: []string{"-TaintToleration"}, without: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := &workv1alpha2.ResourceBinding{}
			b.Labels = map[string]string{workv1alpha2.BindingManagedByLabel: "test"}
			decision, written := placement.Decide(b, placement.Situation{}, placement.Options{Plugins: tc.plugins})
			if !written {
				t.Fatal("nothing was decided")
			}
			b.SetAnnotations(decision.Annotations())
			record, _ := placement.RecordOf(b)
			if diff := cmp.Diff(tc.want, record.Plugins); diff != "" {
				t.Errorf("recorded (-want +got):\n%s", diff)
			}
			as, missing := placement.Options{}.As(record.Plugins)
			if diff := cmp.Diff(tc.missing, missing); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
			asked := as.Plugins == nil
			for _, p := range as.Plugins {
				asked = asked || p.Name() == "TaintToleration"
			}
			if asked == tc.without {
				t.Errorf("TaintToleration is asked: %t, want %t", asked, !tc.without)
			}
		})
	}
}

// picky likes no cluster.
type picky struct{}

func (picky) Name() string { return "Picky" }

func (picky) Filter(*framework.Request, *framework.Cluster) string {
	return "cluster(s) were not liked"
}
