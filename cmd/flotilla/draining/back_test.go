package draining_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	appsv1alpha1 "github.com/flotilla-io/flotilla/api/apps/v1alpha1"
	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/draining"
	"github.com/flotilla-io/flotilla/policies/eviction"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/volumes"
)

// TestAReturnLeavesDataBehind: what comes back is told of as what leaves, and that it goes on with the data of before the drain.
func TestAReturnLeavesDataBehind(t *testing.T) {
	const some = "it takes no data along: the PersistentVolumeClaims data-db-* stay in west, and elsewhere it goes on with those that are there, else with empty ones"
	const again = "it takes no data along: the PersistentVolumeClaims data-db-* stay in west; east still has data-db-0, and it goes on with that, without what was written in west since"
	for name, tc := range map[string]struct {
		there       []types.NamespacedName // claims that east is known to have
		to          string
		dryRun      bool
		out, errOut string
	}{
		"it comes back":               {to: "east", out: "StatefulSet shop/db is placed in east\n", errOut: "warning: StatefulSet shop/db leaves west for east: " + some + "\n"},
		"east has one still":          {there: []types.NamespacedName{{Namespace: "shop", Name: "data-db-0"}}, to: "east", out: "StatefulSet shop/db is placed in east\n", errOut: "warning: StatefulSet shop/db leaves west for east: " + again + "\n"},
		"it stays where it is":        {to: "west", out: "StatefulSet shop/db is placed in west, by what counts now: flotilla explain statefulset/db -n shop says why it is not in east\n"},
		"it is only asked":            {dryRun: true, out: "StatefulSet shop/db would be placed anew; where that moves it, " + some + "\n"},
		"it is asked, and east knows": {dryRun: true, there: []types.NamespacedName{{Namespace: "shop", Name: "data-db-0"}}, out: "StatefulSet shop/db would be placed anew; where that moves it, " + again + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			east, b := drained(), placed("apps/v1", "StatefulSet", "db")
			east.Spec.Taints = nil
			if len(tc.there) > 0 {
				east.Status.Conditions = append(east.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionClaimsKept, Status: metav1.ConditionTrue, Message: volumes.Staying(tc.there)})
			}
			decided(b, "west", placement.Record{Reason: workv1alpha2.BindingReasonSuccess, Drained: []string{"east"}})
			// The claims are no longer kept, but used, as soon as the template is placed there.
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(east, b, set("db")).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(ctx context.Context, hub client.WithWatch, _ client.Object, _ ...client.CreateOption) error {
					decided(b, tc.to, placement.Record{Reason: workv1alpha2.BindingReasonSuccess})
					east.Status.Conditions = east.Status.Conditions[:1]
					if err := hub.Update(ctx, east); err != nil {
						return err
					}
					return hub.Update(ctx, b)
				},
			}).Build()
			var out, errOut strings.Builder
			r := draining.Return{Hub: hub, Clusters: []string{"east"}, Clock: steps{clocktesting.NewFakeClock(time.Unix(0, 0))}, Out: &out, ErrOut: &errOut, Timeout: time.Minute, DryRun: tc.dryRun}
			if err := r.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tc.out, tc.errOut}, []string{out.String(), errOut.String()}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatReturnsByItself: what runs wherever it may is back before it is asked for, and is told of as all else that the drain had moved.
func TestWhatReturnsByItself(t *testing.T) {
	for name, tc := range map[string]struct {
		seen, divided bool // before the drain ended
		want          string
	}{
		"it was away before":        {seen: true, want: "Deployment shop/dup is placed in east\n"},
		"it has been back for long": {want: "no drain has moved anything off east that is to be brought back\n"},
		"beside what is asked for":  {seen: true, divided: true, want: "Deployment shop/div is placed in east\nDeployment shop/dup is placed in east\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			east, dup, div := drained(), placed("apps/v1", "Deployment", "dup"), placed("apps/v1", "Deployment", "div")
			away, back := placement.Record{Reason: workv1alpha2.BindingReasonSuccess, Drained: []string{"east"}}, placement.Record{Reason: workv1alpha2.BindingReasonSuccess}
			decided(dup, "west", away)
			if tc.divided {
				decided(div, "west", away)
			}
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(east, dup, div).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(ctx context.Context, hub client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
					if asked := obj.(*appsv1alpha1.WorkloadRebalancer).Spec.Workloads; len(asked) != 1 || asked[0].Name != "div" {
						t.Errorf("it asks for %+v", asked)
					}
					decided(div, "east", back)
					return hub.Update(ctx, div)
				},
			}).Build()
			var out strings.Builder
			r := draining.Return{Hub: hub, Clusters: []string{"east"}, Clock: steps{clocktesting.NewFakeClock(time.Unix(0, 0))}, Out: &out, ErrOut: &out, Timeout: time.Minute}
			if tc.seen {
				if err := r.Before(t.Context(), hub, []string{"east"}); err != nil {
					t.Fatal(err)
				}
			}
			decided(dup, "east", back)
			if err := hub.Update(t.Context(), dup); err != nil {
				t.Fatal(err)
			}
			if err := r.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestNothingComesBack: what a drain did not move is not asked for; what failover moved is named, with how to have that placed anew.
func TestNothingComesBack(t *testing.T) {
	for name, tc := range map[string]struct {
		moves map[string]string // why what is of this name was moved off east
		want  string
	}{
		"nothing was moved":        {want: "no drain has moved anything off east that is to be brought back\n"},
		"failover moved something": {moves: map[string]string{"web": "untolerated taint {a:NoExecute}"}, want: "no drain has moved anything off east that is to be brought back; what failover moved: flotilla rebalance deployment/web -n shop\n"},
		"failover moved much": {moves: map[string]string{"web": "untolerated taint {a:NoExecute}", "api": "untolerated taint {a:NoExecute}", "db": "its policy changed"},
			want: "no drain has moved anything off east that is to be brought back; what failover moved: flotilla rebalance deployment/api -n shop; the same of 1 more: Deployment shop/web\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			east := drained()
			east.Spec.Taints = nil
			objects := []client.Object{east}
			for name, why := range tc.moves {
				b := placed("apps/v1", "Deployment", name)
				decided(b, "west", placement.Record{Reason: workv1alpha2.BindingReasonSuccess, LastMove: &eviction.Move{From: []string{"east"}, To: []string{"west"}, Why: why}})
				objects = append(objects, b)
			}
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).Build()
			var out strings.Builder
			r := draining.Return{Hub: hub, Clusters: []string{"east"}, Clock: steps{clocktesting.NewFakeClock(time.Unix(0, 0))}, Out: &out, ErrOut: &out, Timeout: time.Minute}
			if err := r.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
