package remedies_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	remedyv1alpha1 "github.com/flotilla-io/flotilla/api/remedy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/remedies"
)

func TestActions(t *testing.T) {
	match := func(condition, operator, status string) string {
		return "{clusterConditionMatch: {conditionType: " + condition + ", operator: " + operator + ", conditionStatus: '" + status + "'}}"
	}
	const traffic = "actions: [TrafficControl]"
	for name, tc := range map[string]struct {
		specs []string
		want  []string
	}{
		"no remedy does nothing":                        {},
		"one without an affinity and matches is always": {[]string{"{" + traffic + "}"}, []string{"TrafficControl"}},
		"an empty list of matches is none":              {[]string{"{decisionMatches: [], " + traffic + "}"}, []string{"TrafficControl"}},
		"an action without a name is none":              {[]string{"{actions: [\"\", TrafficControl]}"}, []string{"TrafficControl"}},
		"one that names the cluster":                    {[]string{"{clusterAffinity: {clusterNames: [us-1, eu-1]}, " + traffic + "}"}, []string{"TrafficControl"}},
		"one that names others":                         {[]string{"{clusterAffinity: {clusterNames: [us-1]}, " + traffic + "}"}, nil},
		"one that names none":                           {[]string{"{clusterAffinity: {}, " + traffic + "}"}, nil},
		"a match that holds":                            {[]string{"{decisionMatches: [" + match("Resolution", "Equal", "False") + "], " + traffic + "}"}, []string{"TrafficControl"}},
		"a match that does not hold":                    {[]string{"{decisionMatches: [" + match("Resolution", "Equal", "True") + "], " + traffic + "}"}, nil},
		"another status than the one that is named":     {[]string{"{decisionMatches: [" + match("Resolution", "NotEqual", "True") + "], " + traffic + "}"}, []string{"TrafficControl"}},
		"the status that is not to be":                  {[]string{"{decisionMatches: [" + match("Resolution", "NotEqual", "False") + "], " + traffic + "}"}, nil},
		"a condition that is not there has no status":   {[]string{"{decisionMatches: [" + match("Disk", "NotEqual", "True") + "], " + traffic + "}"}, nil},
		"an operator that there is not holds never":     {[]string{"{decisionMatches: [" + match("Ready", "Exists", "True") + "], " + traffic + "}"}, nil},
		"one match of several is enough":                {[]string{"{decisionMatches: [" + match("Ready", "Equal", "False") + ", " + match("Resolution", "Equal", "False") + "], " + traffic + "}"}, []string{"TrafficControl"}},
		"a match of nothing holds never":                {[]string{"{decisionMatches: [{}], " + traffic + "}"}, nil},
		"one that asks for nothing":                     {[]string{"{decisionMatches: [" + match("Resolution", "Equal", "False") + "]}"}, nil},
		"several remedies together, sorted and each action once": {
			[]string{"{actions: [TrafficControl, Page]}", "{actions: [Page]}", "{actions: [Drain], clusterAffinity: {clusterNames: [us-1]}}"},
			[]string{"Page", "TrafficControl"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var all []remedyv1alpha1.Remedy
			for _, spec := range tc.specs {
				var r remedyv1alpha1.Remedy
				if err := yaml.UnmarshalStrict([]byte(spec), &r.Spec); err != nil {
					t.Fatal(err)
				}
				all = append(all, r)
			}
			cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-1"}}
			cluster.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}, {Type: "Resolution", Status: metav1.ConditionFalse}}
			if diff := cmp.Diff(tc.want, remedies.Actions(all, cluster)); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
		})
	}
}
