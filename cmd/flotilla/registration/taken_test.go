package registration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/join"
	"github.com/flotilla-io/flotilla/internal/join/outlook"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// TestWhatIsLeftOfAClusterThatIsAnothers: nobody is told to delete what another control
// plane may run by now.
func TestWhatIsLeftOfAClusterThatIsAnothers(t *testing.T) {
	space := workv1alpha2.ExecutionNamespace("edge")
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "one", Finalizers: []string{workv1alpha2.ExecutionControllerFinalizer}}}
	work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{
		Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"theirs"}}`),
	}}}
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(work).Build()
	d := &join.Departure{Name: "edge", Hub: hub}
	edge := &clusterv1alpha1.Cluster{}
	for _, reason := range []string{clusterv1alpha1.ClusterClaimedReason, clusterv1alpha1.ClusterStatusUnknownReason} {
		edge.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Reason: reason}}
		if err := d.Observe(t.Context(), edge); err != nil {
			t.Fatal(err)
		}
	}
	work.Finalizers = nil
	if err := hub.Update(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	if err := d.Observe(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	want := []string{"what the fleet ran in cluster edge stays there: the cluster is another control plane's, which may have taken it over"}
	left := &leftovers{departure: d, pull: true}
	if diff := cmp.Diff(want, left.lines(t.Context())); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
}

// TestWhatIsLeftOfAClusterThatDidNotAnswer: a few are named, and all are counted.
func TestWhatIsLeftOfAClusterThatDidNotAnswer(t *testing.T) {
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: workv1alpha2.ExecutionNamespace("west"), Name: "one", Finalizers: []string{workv1alpha2.ExecutionControllerFinalizer}}}
	for i := range mostNamed + 2 {
		work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, workv1alpha1.Manifest{RawExtension: runtime.RawExtension{
			Raw: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"c-%02d"}}`, i),
		}})
	}
	d := &join.Departure{Name: "west", Hub: fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(work).Build()}
	if err := d.Observe(t.Context(), &clusterv1alpha1.Cluster{Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push}}); err != nil {
		t.Fatal(err)
	}
	d.Abandon()
	want := []string{"the control plane did not remove what the fleet ran in cluster west; 12 objects stay there, as far as the control plane knows:"}
	for i := range mostNamed {
		want = append(want, fmt.Sprintf("  ConfigMap shop/c-%02d", i))
	}
	want = append(want, "  and 2 more",
		"kubectl delete KIND NAME [--namespace NAMESPACE] removes each of them there; all have the label karmada.io/managed=true",
		"flotilla unjoin west --cluster-kubeconfig FILE says which are really there, and takes out what makes the cluster a member")
	left := &leftovers{departure: d}
	if diff := cmp.Diff(want, left.lines(t.Context())); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
}

// TestWhatIsStillGoing: objects that are being deleted are waited for, and reported if they remain.
func TestWhatIsStillGoing(t *testing.T) {
	remains := func(going string, titles ...string) join.Remains {
		out := join.Remains{Titles: titles, All: true}
		if going != "" {
			out.Going = []string{going}
		}
		return out
	}
	const advice = "kubectl delete KIND NAME [--namespace NAMESPACE] removes each of them there; all have the label karmada.io/managed=true"
	for name, tc := range map[string]struct {
		seen     []join.Remains // at each look; the last one stands
		want     []string
		reads    int
		reported []string // meanwhile
	}{
		"nothing is there":          {[]join.Remains{remains("")}, nil, 1, nil},
		"it goes while it is asked": {[]join.Remains{remains("Namespace batch"), remains("Namespace batch"), remains("")}, nil, 3, []string{"waiting for what is still being deleted in cluster west: Namespace batch"}},
		"it takes long":             {[]join.Remains{remains("Namespace batch")}, []string{"being deleted in cluster west, and not gone yet: Namespace batch"}, 11, []string{"waiting for what is still being deleted in cluster west: Namespace batch"}},
		"something else is held there": {[]join.Remains{remains("", "Job batch/run (being deleted, kept by its finalizers: a/b)")}, []string{
			"the control plane did not remove what the fleet ran in cluster west; 1 object stays there:",
			"  Job batch/run (being deleted, kept by its finalizers: a/b)", advice}, 1, nil},
		"something else stays": {[]join.Remains{remains("Namespace batch", "ConfigMap shop/web")}, []string{
			"the control plane did not remove what the fleet ran in cluster west; 1 object stays there:",
			"  ConfigMap shop/web", advice, "being deleted in cluster west, and not gone yet: Namespace batch"}, 11, []string{"waiting for what is still being deleted in cluster west: Namespace batch"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reads, reported := 0, []string(nil)
				report := func(line string) { reported = append(reported, line) }
				left := &leftovers{departure: &join.Departure{Name: "west", Report: report}, member: &rest.Config{}, hub: "h", stays: func(context.Context) (join.Remains, error) {
					reads++
					return tc.seen[min(reads, len(tc.seen))-1], nil
				}}
				if diff := cmp.Diff(tc.want, left.lines(t.Context())); diff != "" || reads != tc.reads {
					t.Errorf("looked %d times, want %d (-want +got):\n%s", reads, tc.reads, diff)
				}
				if diff := cmp.Diff(tc.reported, reported); diff != "" {
					t.Errorf("reported meanwhile (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestWhatAnAgentMayNot is an administrator's, and he is asked for.
func TestWhatAnAgentMayNot(t *testing.T) {
	err := apierrors.NewForbidden(workv1alpha1.GroupVersion.WithResource("works").GroupResource(), "", errors.New(`User "system:karmada:agent:edge" cannot list resource "works"`))
	u := &unregistering{name: "edge", asAgent: true}
	want := "the agent's own credentials do not allow to take cluster edge out (" + err.Error() + "): name an administrator's kubeconfig of the control plane with --karmada-config"
	if diff := cmp.Diff(want, u.describe(fmt.Errorf("%w", err)).Error()); diff != "" {
		t.Errorf("by the agent's way (-want +got):\n%s", diff)
	}
	u.asAgent = false
	if got := u.describe(err).Error(); !strings.HasSuffix(got, "ask for the right to do it") {
		t.Errorf("by another way it says %s", got)
	}
}

// TestAnAgentThatGoesOn: it is reported, unless it was removed.
func TestAnAgentThatGoesOn(t *testing.T) {
	for want, u := range map[string]*unregistering{
		"": {name: "edge", removed: true, member: memberFlags{kubeconfig: "file"}},
		"no agent is installed in cluster edge; one that runs as a process does not end by itself: stop it\n":                                                                                {name: "edge", member: memberFlags{kubeconfig: "file"}},
		"the agent of cluster edge does not end by itself: stop its process, or remove it from the cluster by flotilla unregister edge --cluster-kubeconfig FILE --karmada-config HUBFILE\n": {name: "edge"},
	} {
		output := &strings.Builder{}
		if err := u.remind(output); err != nil || output.String() != want {
			t.Errorf("it says %q, want %q: %v", output, want, err)
		}
	}
}

// TestAWaitThatIsCutOff: an interrupted command reports that the cluster goes on leaving.
func TestAWaitThatIsCutOff(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, begun := range []bool{false, true} {
		output := &strings.Builder{}
		cmd := &cobra.Command{}
		cmd.SetErr(output)
		cmd.SetContext(ctx)
		d := &join.Departure{Name: "edge", Hub: fake.NewClientBuilder().WithScheme(scheme.New()).Build()}
		if begun {
			d.Abandon()
		}
		if err := goesOn(cmd, d, ctx.Err()); !errors.Is(err, context.Canceled) {
			t.Errorf("it ends with %v", err)
		}
		if strings.HasPrefix(output.String(), "cluster edge goes on leaving: ") != begun {
			t.Errorf("begun %t: it says %q", begun, output)
		}
	}
}

// TestWhoMayNotUnregister: what is in a member, its agent first of all, is another control
// plane's that has it by now, or that of the one of which this is a copy.
func TestWhoMayNotUnregister(t *testing.T) {
	quiet := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(quiet.Close)
	mark := &hubclaim.Mark{Run: 2, ID: "lost", Revision: 1 << 40}
	for name, tc := range map[string]struct {
		claim *hubclaim.Claim
		hold  *hubclaim.Hold
		want  string
	}{
		"nobody's":                 {},
		"its own":                  {claim: &hubclaim.Claim{Hub: "mine", Cluster: "edge", Mode: hubclaim.Pull}},
		"another control plane's":  {claim: &hubclaim.Claim{Hub: "theirs", Cluster: "north", Mode: hubclaim.Pull}, want: "belongs to another control plane, cluster north of the control plane with the identity theirs"},
		"that of another cluster":  {claim: &hubclaim.Claim{Hub: "mine", Cluster: "west", Mode: hubclaim.Push}, want: "the cluster west of this control plane, and not edge"},
		"that of the original":     {claim: &hubclaim.Claim{Hub: "mine", Cluster: "edge", Mode: hubclaim.Pull, Mark: mark}, want: "has seen more of this control plane than its store knows"},
		"its own, while it waits":  {claim: &hubclaim.Claim{Hub: "mine", Cluster: "edge", Mode: hubclaim.Pull}, hold: &hubclaim.Hold{Clusters: []string{"edge"}}, want: "flotilla resume hub"},
		"its own, and others wait": {claim: &hubclaim.Claim{Hub: "mine", Cluster: "edge", Mode: hubclaim.Pull}, hold: &hubclaim.Hold{Clusters: []string{"west"}}},
	} {
		t.Run(name, func(t *testing.T) {
			system := func(annotation, text string) *corev1.Namespace {
				return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "mine", Annotations: map[string]string{annotation: text}}}
			}
			text := ""
			if tc.claim != nil {
				text = tc.claim.Encode()
			}
			history := hubclaim.History{Runs: []hubclaim.Run{{Number: 1, ID: "a"}}, Hold: tc.hold}
			o := join.UnjoinOptions{
				Name: "edge", HubID: "mine",
				Hub:    fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(system(clusterv1alpha1.HistoryAnnotation, history.Encode())).Build(),
				Member: fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(system(clusterv1alpha1.ClaimAnnotation, text)).Build(),
			}
			u := &unregistering{name: "edge"}
			err := u.mayLeave(t.Context(), &rest.Config{Host: quiet.URL}, o)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

// TestWhatAClusterKeeps: what stays on purpose is named, unless nothing could be removed.
func TestWhatAClusterKeeps(t *testing.T) {
	will := outlook.Outlook{Kept: []string{"Namespace one (in it: PersistentVolumeClaim data)", "PersistentVolumeClaim one/data, with its data"}, Preserved: 2}
	lost := will
	lost.Away = "it does not answer"
	for name, tc := range map[string]struct {
		will outlook.Outlook
		want []string
	}{
		"nothing": {},
		"data": {will, []string{
			"cluster west keeps:", "  Namespace one (in it: PersistentVolumeClaim data)", "  PersistentVolumeClaim one/data, with its data", "  2 objects that their policy preserves",
		}},
		"all, as it is away": {lost, nil},
	} {
		t.Run(name, func(t *testing.T) {
			left := &leftovers{departure: &join.Departure{Name: "west"}}
			left.predict(tc.will)
			if diff := cmp.Diff(tc.want, left.lines(t.Context())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatIsLetGoOfAtOnce: what runs in a cluster whose agent has been silent for long is known before the
// registration goes, as the control plane lets go of all of it in the same moment.
func TestWhatIsLetGoOfAtOnce(t *testing.T) {
	for name, leaves := range map[string]bool{"what is placed there": false, "what is about to leave it": true} {
		t.Run(name, func(t *testing.T) {
			work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: workv1alpha2.ExecutionNamespace("edge"), Name: "one", Finalizers: []string{workv1alpha2.ExecutionControllerFinalizer}}}
			work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{
				Raw: []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"default","name":"web"}}`),
			}}}
			edge := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "edge"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}}
			edge.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionUnknown, Reason: clusterv1alpha1.ClusterStatusUnknownReason}}
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(work, edge).WithInterceptorFuncs(interceptor.Funcs{
				Delete: func(ctx context.Context, hub client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
					if err := hub.Delete(ctx, obj, opts...); err != nil {
						return err
					}
					if _, is := obj.(*clusterv1alpha1.Cluster); is {
						work.Finalizers = nil
						return errors.Join(hub.Update(ctx, work), client.IgnoreNotFound(hub.Delete(ctx, work)))
					}
					return nil
				},
			}).Build()
			if leaves {
				if err := hub.Delete(t.Context(), work); err != nil {
					t.Fatal(err)
				}
				if err := hub.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil {
					t.Fatal(err)
				}
			}
			cmd := &cobra.Command{}
			cmd.SetErr(io.Discard)
			cmd.SetContext(t.Context())
			u, left := &unregistering{name: "edge", wait: time.Minute}, &leftovers{departure: &join.Departure{Name: "edge", Hub: hub}, pull: true}
			if err := u.leave(cmd, hub, left); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"Deployment default/web"}, left.departure.Left()); diff != "" {
				t.Errorf("what stays (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMessagesAboutOneThatIsNotReady: once, with the time that was asked for, and of an agent that it goes on only where it has reported.
func TestMessagesAboutOneThatIsNotReady(t *testing.T) {
	r := &registering{within: 8 * time.Second}
	r.cluster.name = "edge"
	for want, err := range map[string]error{
		"cluster edge is registered, and not ready after 8s: its agent has not reported; see that it runs": &join.NotReadyError{
			Cluster: "edge", Within: 7 * time.Second, Why: "its agent has not reported", Next: "see that it runs", Silent: true,
		},
		"cluster edge is registered, and not ready after 8s: its kube-system is slow; its agent goes on trying, and flotilla status says how it is": &join.NotReadyError{
			Cluster: "edge", Within: 7 * time.Second, Why: "its kube-system is slow", Next: "describe it",
		},
		"cluster edge is registered, and not ready: the agent a/b does not run; flotilla status says how it is": errors.New("the agent a/b does not run"),
	} {
		if got := r.notReady(err); got.Error() != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
}

// TestWhatUnjoinLeaves: without a way into the cluster its accounts stay, and the claim only where nobody could take it off.
func TestWhatUnjoinLeaves(t *testing.T) {
	const by = ": flotilla unjoin west --cluster-kubeconfig FILE removes them, also now\n"
	for want, silent := range map[string]time.Duration{
		"the control plane's accounts stay in cluster west" + by:                                     0,
		"the control plane's accounts and its claim stay in cluster west, which did not answer" + by: time.Second,
	} {
		if got := accountsStay("west", silent); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
}
