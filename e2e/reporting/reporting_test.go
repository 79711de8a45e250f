package reporting

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/e2e/fleet"
)

const policies = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: policy.karmada.io/v1alpha1
kind: FederatedResourceQuota
metadata: {name: cores, namespace: shop}
spec: {overall: {cpu: 1}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: labelled, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {overridden: "yes"}}]}}]
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: everywhere, namespace: shop}
spec:
  propagateDeps: true
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement: {clusterAffinity: {clusterNames: [east, west]}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {a: b}
`

// environment configures the control plane to be what Karmada's clients expect.
var environment = []string{
	"--reporting=karmada", "--feature-gates=AllAlpha=true,AllBeta=true", "--controllers=*,hpaScaleTargetMarker,deploymentReplicasSyncer",
	"--enable-no-execute-taint-eviction=true", "--allow-no-execute-taint-policy=true", "--enable-scheduler-estimator=true",
}

// deployment is one that asks for so much CPU, with a reference to a ConfigMap if one
// is named.
func deployment(name, cpu, settings string) string {
	from := "[]"
	if settings != "" {
		from = "[{configMapRef: {name: " + settings + "}}]"
	}
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: shop}
spec:
  replicas: 1
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: web, image: web:1, envFrom: %[3]s, resources: {requests: {cpu: %[2]s}}}]}
`, name, cpu, from)
}

// world is a fleet whose control plane reports as Karmada does.
type world struct {
	*testing.T
	*fleet.Fleet
}

func (w world) apply(manifests string) {
	w.Helper()
	w.flotilla(manifests, "kubectl", "apply", "-f", "-")
}

func (w world) flotilla(stdin string, args ...string) {
	w.Helper()
	if _, err := fleet.Run(w.Context(), []byte(stdin), "flotilla", append(args, "--kubeconfig", w.Hub.Kubeconfig)...); err != nil {
		w.Fatal(err)
	}
}

// events are those on the objects of a name, as Karmada's clients look for them.
func (w world) events(ctx context.Context, namespace, name string) ([]corev1.Event, error) {
	list := &corev1.EventList{}
	err := w.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{"involvedObject.name": name})
	return list.Items, err
}

// await waits for an Event of each reason on the objects of a name, and returns the
// first of each.
func (w world) await(namespace, name string, reasons ...string) map[string]corev1.Event {
	w.Helper()
	got := map[string]corev1.Event{}
	err := fleet.Until(w.Context(), 200*time.Millisecond, fleet.Slack*30*time.Second, func(ctx context.Context) error {
		events, err := w.events(ctx, namespace, name)
		if err != nil {
			return err
		}
		for _, e := range events {
			if first, seen := got[e.Reason]; !seen || revision(e) < revision(first) {
				got[e.Reason] = e
			}
		}
		for _, reason := range reasons {
			if _, seen := got[reason]; !seen {
				return fmt.Errorf("there is no %s", reason)
			}
		}
		return nil
	})
	if err != nil {
		var has []string
		for reason := range got {
			has = append(has, reason)
		}
		w.Fatalf("Events on %s/%s: %v; it has %v", namespace, name, err, has)
	}
	for reason, e := range got {
		if warns := e.Type == corev1.EventTypeWarning; slices.Contains(reasons, reason) && warns != strings.HasSuffix(reason, "Failed") {
			w.Errorf("%s on %s is of type %s", reason, name, e.Type)
		}
	}
	return got
}

// revision orders Events by when they were written first.
func revision(e corev1.Event) int64 {
	_, suffix, _ := strings.Cut(strings.TrimPrefix(e.Name, e.InvolvedObject.Name), ".")
	n, err := strconv.ParseInt(suffix, 16, 64)
	if err != nil {
		return 0
	}
	return n
}

// works are the names of a Deployment's Works in the clusters' namespaces.
func (w world) work(cluster, deployment string) string {
	w.Helper()
	name := ""
	err := fleet.Until(w.Context(), 200*time.Millisecond, fleet.Slack*30*time.Second, func(ctx context.Context) error {
		events := &corev1.EventList{}
		if err := w.Client.List(ctx, events, client.InNamespace("karmada-es-"+cluster), client.MatchingFields{"involvedObject.kind": "Work"}); err != nil {
			return err
		}
		for _, e := range events.Items {
			if strings.HasPrefix(e.InvolvedObject.Name, deployment+"-") {
				name = e.InvolvedObject.Name
				return nil
			}
		}
		return fmt.Errorf("no Event is on a Work of %s in %s", deployment, cluster)
	})
	if err != nil {
		w.Fatal(err)
	}
	return name
}

// follow checks that Events were told one after the other.
func (w world) follow(events ...corev1.Event) {
	w.Helper()
	for i := range events[1:] {
		if revision(events[i]) >= revision(events[i+1]) {
			w.Errorf("%s on %s was told before %s on %s", events[i+1].Reason, events[i+1].InvolvedObject.Name, events[i].Reason, events[i].InvolvedObject.Name)
		}
	}
}

// TestEventsOfKarmada follows one Deployment with an override, a dependency and a quota.
func TestEventsOfKarmada(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	f, err := fleet.StartJoined(t.Context(), fleet.Options{Dir: fleet.Folder(t), Members: []string{"east", "west"}, Nodes: 1, HubArgs: environment})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Stop(); err != nil {
			t.Error(err)
		}
	})
	w := world{t, f}
	for _, name := range []string{"east", "west"} {
		w.await(metav1.NamespaceDefault, name, "CreateExecutionSpaceSucceed", "SyncImpersonationConfigSucceed")
	}
	w.apply(policies + "---" + deployment("web", "100m", "settings"))
	w.inOrder()
	w.cost()
	w.overQuota()
	w.dated()
	w.suspended()
	w.flotilla("", "unjoin", "west", "--cluster-kubeconfig", f.Members["west"].Kubeconfig, "--cluster-context", "west")
	w.await(metav1.NamespaceDefault, "west", "RemoveExecutionSpaceSucceed")
}

func (w world) inOrder() {
	w.Helper()
	template := w.await("shop", "web", "GetReplicasSucceed", "ApplyPolicySucceed", "ScheduleBindingSucceed", "GetDependenciesSucceed",
		"ApplyOverridePolicySucceed", "SyncWorkSucceed", "AggregateStatusSucceed")
	binding := w.await("shop", "web-deployment", "ScheduleBindingSucceed", "SyncScheduleResultToDependenciesSucceed", "SyncWorkSucceed", "AggregateStatusSucceed")
	w.await("shop", "settings", "SyncWorkSucceed")
	w.await("shop", "cores", "CollectOverallStatusSucceed")
	var first corev1.Event
	for _, cluster := range []string{"east", "west"} {
		work := w.await("karmada-es-"+cluster, w.work(cluster, "web"), "SyncSucceed", "ReflectStatusSucceed", "InterpretHealthSucceed")
		w.follow(template["SyncWorkSucceed"], work["SyncSucceed"], work["ReflectStatusSucceed"], work["InterpretHealthSucceed"])
		if at := work["SyncSucceed"]; first.Name == "" || revision(at) < revision(first) {
			first = at
		}
	}
	w.follow(template["ApplyPolicySucceed"], template["GetReplicasSucceed"], template["ScheduleBindingSucceed"], template["GetDependenciesSucceed"])
	w.follow(template["ApplyPolicySucceed"], template["ApplyOverridePolicySucceed"], template["SyncWorkSucceed"], first, template["AggregateStatusSucceed"])
	w.follow(binding["ScheduleBindingSucceed"], binding["SyncWorkSucceed"], first, binding["AggregateStatusSucceed"])
	w.follow(binding["ScheduleBindingSucceed"], binding["SyncScheduleResultToDependenciesSucceed"])
	if kind := template["ScheduleBindingSucceed"].InvolvedObject.Kind; kind != "Deployment" {
		w.Errorf("the template's Events are on a %s", kind)
	}
	if kind := binding["ScheduleBindingSucceed"].InvolvedObject.Kind; kind != "ResourceBinding" {
		w.Errorf("the binding's Events are on a %s", kind)
	}
}

// still waits until no Event was written for a time.
func (w world) still(most time.Duration) {
	w.Helper()
	last, since := "", time.Now()
	err := fleet.Until(w.Context(), 200*time.Millisecond, fleet.Slack*time.Minute, func(ctx context.Context) error {
		all := &corev1.EventList{}
		if err := w.Client.List(ctx, all); err != nil {
			return err
		}
		now := ""
		for _, e := range all.Items {
			now += e.ResourceVersion + " "
		}
		if now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) < most {
			return errors.New("Events are still written")
		}
		return nil
	})
	if err != nil {
		w.Fatal(err)
	}
}

// tries are for how many Deployments the Event writes are counted: what is more than half a
// second apart, as it may be on a slow machine, is counted up by one more write.
const tries = 5

// cost counts the Event writes for a paused Deployment, of which nothing changes again:
// 5 on the template, 3 on the binding and 3 on each Work.
func (w world) cost() {
	w.Helper()
	want := map[string]int32{}
	for _, reason := range []string{"GetReplicasSucceed", "ApplyPolicySucceed", "ScheduleBindingSucceed", "SyncWorkSucceed", "AggregateStatusSucceed"} {
		want["Deployment in shop "+reason] = 1
	}
	for _, reason := range []string{"ScheduleBindingSucceed", "SyncWorkSucceed", "AggregateStatusSucceed"} {
		want["ResourceBinding in shop "+reason] = 1
	}
	for _, reason := range []string{"SyncSucceed", "ReflectStatusSucceed", "InterpretHealthSucceed"} {
		want["Work in karmada-es-east "+reason], want["Work in karmada-es-west "+reason] = 1, 1
	}
	diff := ""
	for n := range tries {
		if diff = cmp.Diff(want, w.writes(fmt.Sprint("calm-", n))); diff == "" {
			return
		}
	}
	w.Errorf("Event writes (-want +got):\n%s", diff)
}

// writes makes a paused Deployment, and counts the Event writes for it.
func (w world) writes(calm string) map[string]int32 {
	w.Helper()
	w.apply(strings.Replace(deployment(calm, "10m", ""), "replicas: 1", "replicas: 1\n  paused: true", 1))
	w.await("shop", calm, "AggregateStatusSucceed")
	for _, cluster := range []string{"east", "west"} {
		w.await("karmada-es-"+cluster, w.work(cluster, calm), "SyncSucceed", "ReflectStatusSucceed", "InterpretHealthSucceed")
	}
	w.still(2 * time.Second) // what would be written too much is written by then
	writes := map[string]int32{}
	all := &corev1.EventList{}
	if err := w.Client.List(w.Context(), all); err != nil {
		w.Fatal(err)
	}
	for _, e := range all.Items {
		if e.InvolvedObject.Name == calm || strings.HasPrefix(e.InvolvedObject.Name, calm+"-") {
			writes[e.InvolvedObject.Kind+" in "+e.Namespace+" "+e.Reason] += e.Count
		}
	}
	return writes
}

// overQuota asks for more than there is.
func (w world) overQuota() {
	w.Helper()
	w.apply(deployment("big", "2", ""))
	w.await("shop", "big", "ScheduleBindingFailed")
	failed := w.await("shop", "big-deployment", "ScheduleBindingFailed")["ScheduleBindingFailed"]
	if !strings.HasPrefix(failed.Message, `admission webhook "resourcebinding.karmada.io" denied the request`) {
		w.Errorf("the Event says %q", failed.Message)
	}
	w.flotilla("", "kubectl", "delete", "deployment", "-n", "shop", "big")
}

// dated has a cluster's label lead to the same clusters once more.
func (w world) dated() {
	w.Helper()
	read := func(ctx context.Context) (*workv1alpha2.ResourceBinding, error) {
		b := &workv1alpha2.ResourceBinding{}
		return b, w.Client.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web-deployment"}, b)
	}
	before, err := read(w.Context())
	if err != nil || before.Status.LastScheduledTime == nil {
		w.Fatalf("%v, last scheduled %v", err, before.Status.LastScheduledTime)
	}
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}
	if err := w.Client.Patch(w.Context(), cluster, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"tier":"gold"}}}`))); err != nil {
		w.Fatal(err)
	}
	err = fleet.Until(w.Context(), 200*time.Millisecond, fleet.Slack*10*time.Second, func(ctx context.Context) error {
		is, err := read(ctx)
		if err == nil && !before.Status.LastScheduledTime.Before(is.Status.LastScheduledTime) {
			err = fmt.Errorf("it was last scheduled at %s, as before", is.Status.LastScheduledTime)
		}
		if err == nil && is.Generation != before.Generation {
			err = fmt.Errorf("the binding is of generation %d, before %d", is.Generation, before.Generation)
		}
		return err
	})
	if err != nil {
		w.Error(err)
	}
}

// suspended has the Works held back.
func (w world) suspended() {
	w.Helper()
	policy := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "everywhere"}}
	if err := w.Client.Patch(w.Context(), policy, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"suspension":{"dispatching":true}}}`))); err != nil {
		w.Fatal(err)
	}
	w.await("karmada-es-east", w.work("east", "web"), "WorkDispatching")
}
