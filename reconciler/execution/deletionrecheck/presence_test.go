package deletionrecheck_test

import (
	"errors"
	"fmt"
	"net/url"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/reconciler/execution/deletionrecheck"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
)

// fleet is a world in which both clusters are said to be ready, second 200 is now, and west has answered since second 150, and east since 50
// and last at second 199.
type fleet struct {
	*world
	back, since, last time.Time // of west; of east, and when it answered last
	asked             []string
	before            []func(*deletionrecheck.Judge)
	clock             *clocktesting.FakePassiveClock
}

func (f *fleet) answers(cluster string, asked time.Time) (time.Time, bool, time.Duration) {
	f.asked = append(f.asked, fmt.Sprintf("%s since %.1f", cluster, float64(asked.UnixMilli())/1000))
	if cluster != "east" || f.last.Before(asked) {
		return time.Time{}, false, 300 * time.Millisecond
	}
	return f.since, true, 0
}

// tried has the judge told at a second how a removal went.
func (f *fleet) tried(second int64, err error) {
	f.before = append(f.before, func(j *deletionrecheck.Judge) {
		f.clock.SetTime(time.Unix(second, 0))
		j.Tried(client.ObjectKeyFromObject(f.west), err)
		f.clock.SetTime(time.Unix(200, 0))
	})
}

// forgets has the judge told that the Work is gone.
func (f *fleet) forgets() {
	f.before = append(f.before, func(j *deletionrecheck.Judge) { j.Forget(client.ObjectKeyFromObject(f.west)) })
}

// too places it in a second cluster, which is ready or lost, and does not answer.
func (f *fleet) too(name string, is metav1.ConditionStatus) {
	f.clusters[name] = ready(name, is, "a", 1)
	f.copies = append(f.copies, work(name, workv1alpha1.ResourceHealthy))
	f.binding.Spec.Clusters = append([]workv1alpha2.TargetCluster{{Name: name}}, f.binding.Spec.Clusters...)
}

func waits(event int) error {
	return &waitqueue.Blocked{Cause: waitqueue.Cause{Event: event}, Err: errors.New("it waits")}
}

func answered(code int) error {
	return fmt.Errorf("remove: %w", apierrors.NewGenericServerResponse(code, "delete", schema.GroupResource{}, "web", "", 0, true))
}

// TestWhatAnswersCounts: neither that a cluster is said to be ready, nor that its copy is said to be healthy, is believed after its copy's
// removal was interrupted, until it has answered; and nobody is asked for a removal that was not.
func TestWhatAnswersCounts(t *testing.T) {
	const no, yes = metav1.ConditionFalse, metav1.ConditionTrue
	refused := &url.Error{Op: "Delete", URL: "https://west", Err: syscall.ECONNREFUSED}
	always := func(f *fleet) { f.back = time.Unix(50, 0) }
	for name, tc := range map[string]struct {
		change func(f *fleet)
		want   string
		asked  []string
	}{
		"the other cluster has answered since this one is back": {func(*fleet) {}, "removed", []string{"east since 150.0"}},
		"it has not yet":                    {func(f *fleet) { f.last = time.Unix(149, 0) }, "waits 300ms", []string{"east since 150.0"}},
		"it is back itself for two seconds": {func(f *fleet) { f.since = time.Unix(198, 0) }, "waits 3s", []string{"east since 150.0"}},
		"its copy is unhealthy":             {func(f *fleet) { f.east.Status.ManifestStatuses[0].Health = workv1alpha1.ResourceUnhealthy }, "kept", nil},
		"it is lost":                        {func(f *fleet) { f.clusters["east"] = ready("east", no, "a", 190) }, "kept", nil},
		"one of two has answered":           {func(f *fleet) { f.too("away", yes) }, "removed", []string{"away since 150.0", "east since 150.0"}},
		"one of two is lost, and the other has not answered":     {func(f *fleet) { f.too("gone", no); f.last = time.Unix(149, 0) }, "waits 300ms", []string{"east since 150.0"}},
		"this cluster came back in the second of the deletion":   {func(f *fleet) { f.back = time.UnixMilli(100_400); f.last = time.Unix(100, 0) }, "waits 300ms", []string{"east since 100.4"}},
		"when this cluster came back is not known":               {func(f *fleet) { f.back = time.Time{} }, "waits 300ms", []string{"east since 200.0"}},
		"a removal was refused at the door":                      {func(f *fleet) { always(f); f.tried(180, fmt.Errorf("remove: %w", refused)) }, "removed", []string{"east since 180.0"}},
		"a removal waited for the connection":                    {func(f *fleet) { always(f); f.tried(200, waits(waitqueue.OnProof)) }, "waits 300ms", []string{"east since 200.0"}},
		"a removal met a proxy before a cluster that is away":    {func(f *fleet) { always(f); f.tried(200, answered(503)) }, "waits 300ms", []string{"east since 200.0"}},
		"a removal failed, and the cluster came back after that": {func(f *fleet) { f.tried(120, refused) }, "removed", []string{"east since 150.0"}},
		"it was kept before, and the cluster has answered since": {func(f *fleet) { always(f); kept(f.west, deletionrecheck.Reason) }, "removed", []string{"east since 50.0"}},
		"the cluster is said to be lost since, and is not":       {func(f *fleet) { always(f); f.clusters["west"] = ready("west", no, "a", 110) }, "removed", []string{"east since 50.0"}},
		"this cluster has answered all the time":                 {always, "removed", nil},
		"a removal was refused by the cluster itself":            {func(f *fleet) { always(f); f.tried(180, answered(403)) }, "removed", nil},
		"a removal waits for something else":                     {func(f *fleet) { always(f); f.tried(180, waits(waitqueue.OnRetry)) }, "removed", nil},
		"a removal went well":                                    {func(f *fleet) { always(f); f.tried(180, nil) }, "removed", nil},
		"another Work of that name had failed":                   {func(f *fleet) { always(f); f.tried(180, refused); f.forgets() }, "removed", nil},
		"somebody asked for it while the cluster was lost":       {func(f *fleet) { f.clusters["west"] = ready("west", no, "a", 40) }, "removed", nil},
		"the template is deleted": {func(f *fleet) {
			f.binding.DeletionTimestamp, f.binding.Finalizers = &metav1.Time{Time: time.Unix(9, 0)}, []string{"a/b"}
		}, "removed", nil},
		"it leaves before it starts elsewhere": {func(f *fleet) {
			f.binding.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "west", PurgeMode: policyv1alpha1.PurgeModeDirectly}}
		}, "removed", nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fleet{world: newWorld(t), back: time.Unix(150, 0), since: time.Unix(50, 0), last: time.Unix(199, 0), clock: clocktesting.NewFakePassiveClock(time.Unix(200, 0))}
			f.clusters = map[string]*clusterv1alpha1.Cluster{"west": ready("west", yes, "a", 1), "east": ready("east", yes, "a", 1)}
			tc.change(f)
			returns := &deletionrecheck.Returns{}
			if !f.back.IsZero() {
				returns.Note("west", f.back)
			}
			judge := deletionrecheck.New(f.hub(), deletionrecheck.Options{Bindings: true, Answers: f.answers, Returns: returns, Clock: f.clock})
			for _, happens := range f.before {
				happens(judge)
			}
			got := "removed"
			switch err := judge.Keeps(t.Context(), f.west, f.clusters["west"]); {
			case deletionrecheck.Waits(err):
				got = "waits " + deletionrecheck.Again(err).String()
			case deletionrecheck.Is(err):
				got = "kept"
			case err != nil:
				t.Error(err)
			}
			if diff := cmp.Diff([]any{tc.want, tc.asked}, []any{got, f.asked}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
