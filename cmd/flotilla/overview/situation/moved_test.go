package situation_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/policies/volumes"
)

// TestClaimsThatWereMovedOff: a claim that stays where its template was moved off is what a drain has announced, and no problem.
func TestClaimsThatWereMovedOff(t *testing.T) {
	const one = "1 object that no Work names: PersistentVolumeClaim shop/files (with its data); flotilla prune --cluster west removes what nobody needs"
	const two = "2 objects that no Work names: PersistentVolumeClaim shop/files (with its data), ConfigMap shop/late; flotilla prune --cluster west removes what nobody needs"
	const look = "look at each first, as after a restored backup what was made since is among them: flotilla prune --cluster west --dry-run"
	stays := situation.Note{Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "files",
		Message: "it stays in west with its data, although its template is placed elsewhere", Next: "to give up its data there: flotilla prune --cluster west --dry-run"}
	problem := func(message, next string) []situation.Problem {
		return []situation.Problem{{State: situation.Progressing, Kind: "Cluster", Name: "west", Message: message, Next: next}}
	}
	for name, tc := range map[string]struct {
		says   string
		placed []string // nil: there is no such template
		held   bool
		within string
		want   []situation.Problem
		notes  []situation.Note
	}{
		"it is placed elsewhere":                               {says: one, placed: []string{"east"}, notes: []situation.Note{stays}},
		"so is it, beside another":                             {says: two, placed: []string{"east"}, want: problem("1 object that no Work names: ConfigMap shop/late", look), notes: []situation.Note{stays}},
		"it is to be there":                                    {says: one, placed: []string{"east", "west"}},
		"it is to be there, beside another":                    {says: two, placed: []string{"west"}, want: problem("1 object that no Work names: ConfigMap shop/late", look)},
		"it is placed elsewhere, for one of another namespace": {says: one, within: "flux-system", placed: []string{"east"}, notes: []situation.Note{stays}},
		"nothing is known of it":                               {says: one, want: problem("1 object that no Work names: PersistentVolumeClaim shop/files (with its data)", look)},
		"the store was set back": {says: one, placed: []string{"east"}, held: true,
			want: problem("1 object that no Work names: PersistentVolumeClaim shop/files (with its data)", "leave them alone, as what was made since the backup is among them: flotilla resume hub --dry-run")},
	} {
		t.Run(name, func(t *testing.T) {
			s := situation.NewSurvey(now, tc.within)
			west := member("west")
			say := func(condition, message string) {
				west.Status.Conditions = append(west.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Message: message})
			}
			say(clusterv1alpha1.ClusterConditionOrphansFound, tc.says)
			say(clusterv1alpha1.ClusterConditionClaimsKept, volumes.Staying([]types.NamespacedName{{Namespace: "shop", Name: "files"}}))
			if tc.held {
				say(clusterv1alpha1.ClusterConditionHeld, "set back")
			}
			s.Cluster(west, time.Time{})
			s.Cluster(member("east"), time.Time{})
			if tc.placed != nil {
				b := bindingOf("files")
				b.Spec.Resource.APIVersion, b.Spec.Resource.Kind, b.Spec.Clusters = "v1", "PersistentVolumeClaim", nil
				for _, cluster := range tc.placed {
					b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: cluster})
				}
				s.Binding(b, nil)
			}
			fleet := s.Fleet()
			problems := slices.DeleteFunc(fleet.Problems, func(p situation.Problem) bool { return p.Kind != "Cluster" || p.State == situation.Failed })
			notes := slices.DeleteFunc(fleet.Notes, func(n situation.Note) bool { return !strings.HasPrefix(n.Message, "it stays") })
			if diff := cmp.Diff([]any{tc.want, tc.notes}, []any{problems, notes}, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("problems, notes (-want +got):\n%s", diff)
			}
		})
	}
}
