package change_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
)

// TestChange walks the commands on the real thing: a control plane with its loops
// and a member in which things run already.
func TestChange(t *testing.T) {
	w := newWorld(t)
	w.run(t, "shop")
	for _, step := range []struct {
		name string
		run  func(*testing.T, *world)
	}{
		{"a namespace that the control plane has not is missed", testNoNamespace},
		{"what would be wrong is refused", testRefused},
		{"a dry run says what would be made and makes nothing", testDryRun},
		{"what runs is taken over with what it needs, and nothing restarts", testPromoted},
		{"what is printed are whole manifests", testPrinted},
		{"what is taken over is refused", testAgain},
		{"what was cut off half way goes on from what is there", testCutOff},
		{"what is given back goes on running, and is nobody's", testUndone},
		{"what was given back can be taken over again", testTwice},
		{"no usual kind would be changed", testKinds},
		{"another policy that would carry it is named", testOtherPolicy},
		{"an override that would restart it is refused", testOverride},
		{"what scales in its cluster is not scaled back", testScaled},
		{"a kind that the control plane has not is named with its definition", testNoKind},
		{"apply carries what it applies to clusters", testApply},
		{"kubectl's commands work", testKubectl},
		{"what is protected stays", testProtected},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, w) }) {
			return
		}
	}
}

const secretValue = "hunter2-in-the-clear"

// run has a Deployment with a ConfigMap, a Secret and a service account run in
// the member.
func (w *world) run(t *testing.T, namespace string) {
	t.Helper()
	labels := map[string]string{"app": "web"}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	from := func(kind, name string) corev1.EnvFromSource {
		if kind == "Secret" {
			return corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
		}
		return corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
	}
	for _, obj := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.ConfigMap{ObjectMeta: meta("settings"), Data: map[string]string{"color": "blue"}},
		&corev1.Secret{ObjectMeta: meta("db"), StringData: map[string]string{"password": secretValue}},
		&corev1.ServiceAccount{ObjectMeta: meta("web")},
		&appsv1.Deployment{ObjectMeta: meta("web"), Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				ServiceAccountName: "web",
				Containers: []corev1.Container{{
					Name: "web", Image: "web:1",
					EnvFrom: []corev1.EnvFromSource{from("ConfigMap", "settings"), from("Secret", "db")},
				}},
			}},
		}},
	} {
		if err := w.Edge.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	servertest.Eventually(t, "the Deployment runs in the member", func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		err := w.Edge.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "web"}, d)
		if err == nil && d.Status.ReadyReplicas != 2 {
			err = fmt.Errorf("%d of 2 are ready", d.Status.ReadyReplicas)
		}
		return err
	})
}

// running returns the UIDs of everything in the namespace of the member.
func (w *world) running(t *testing.T, namespace string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for kind, list := range map[string]client.ObjectList{
		"Deployment": &appsv1.DeploymentList{}, "ReplicaSet": &appsv1.ReplicaSetList{}, "Pod": &corev1.PodList{},
		"ConfigMap": &corev1.ConfigMapList{}, "Secret": &corev1.SecretList{}, "ServiceAccount": &corev1.ServiceAccountList{},
	} {
		if err := w.Edge.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		for _, obj := range objects(list) {
			out[kind+" "+obj.GetName()] = string(obj.GetUID())
		}
	}
	return out
}

func objects(list client.ObjectList) []client.Object {
	var out []client.Object
	switch l := list.(type) {
	case *appsv1.DeploymentList:
		out = pointers(l.Items, out)
	case *appsv1.ReplicaSetList:
		out = pointers(l.Items, out)
	case *corev1.PodList:
		out = pointers(l.Items, out)
	case *corev1.ConfigMapList:
		out = pointers(l.Items, out)
	case *corev1.SecretList:
		out = pointers(l.Items, out)
	case *corev1.ServiceAccountList:
		out = pointers(l.Items, out)
	}
	return out
}

func pointers[T any](items []T, out []client.Object) []client.Object {
	for i := range items {
		out = append(out, any(&items[i]).(client.Object))
	}
	return out
}

// managed lists what in the namespace of the member bears a mark of the fleet.
func (w *world) managed(ctx context.Context, namespace string) (map[string]bool, error) {
	out := map[string]bool{}
	for kind, list := range map[string]client.ObjectList{
		"Deployment": &appsv1.DeploymentList{}, "ConfigMap": &corev1.ConfigMapList{},
		"Secret": &corev1.SecretList{}, "ServiceAccount": &corev1.ServiceAccountList{},
	} {
		if err := w.Edge.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
		for _, obj := range objects(list) {
			for key := range obj.GetLabels() {
				if strings.Contains(key, "karmada.io") {
					out[kind+" "+obj.GetName()] = true
				}
			}
			for key := range obj.GetAnnotations() {
				if strings.Contains(key, "karmada.io") {
					out[kind+" "+obj.GetName()] = true
				}
			}
		}
	}
	return out, nil
}

func testNoNamespace(t *testing.T, w *world) {
	want := result{Code: 1, Err: "error: namespace shop is not in the control plane: flotilla create namespace shop makes it, and in the clusters it is used as it is\n"}
	if diff := cmp.Diff(want, w.direct(t, "deployment", "web", "-n", "shop")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := w.call(t, "", "create", "namespace", "shop"); got.Code != 0 || got.Out != "namespace/shop created\n" {
		t.Fatal(got)
	}
}

func testRefused(t *testing.T, w *world) {
	pods := &corev1.PodList{}
	if err := w.Edge.List(t.Context(), pods, client.InNamespace("shop")); err != nil {
		t.Fatal(err)
	}
	set := metav1.GetControllerOf(&pods.Items[0]).Name
	for call, want := range map[string]result{
		"pod " + pods.Items[0].Name + " -n shop":    {Code: 1, Err: "error: Pod shop/" + pods.Items[0].Name + " in cluster east belongs to ReplicaSet " + set + ": promote that\n"},
		"replicaset " + set + " -n shop":            {Code: 1, Err: "error: ReplicaSet shop/" + set + " in cluster east belongs to Deployment web: promote that\n"},
		"deployment gone -n shop":                   {Code: 1, Err: "error: there is no Deployment shop/gone in cluster east: nothing to promote; flotilla get deployment -A -C east lists what there is\n"},
		"boat web -n shop":                          {Code: 1, Err: "error: cluster east knows no kind \"boat\": flotilla api-resources -C east lists them\n"},
		"namespace shop":                            {Code: 1, Err: "error: a namespace is not promoted: flotilla create namespace shop makes it in the control plane, and what is in the clusters is used as it is\n"},
		"configmap kube-root-ca.crt -n kube-system": {Code: 1, Err: "error: ConfigMap kube-system/kube-root-ca.crt never goes from the control plane to clusters: it stays the cluster's own\n"},
		"deployment web -n shop --dry-run=maybe":    {Code: 2, Err: "error: there is no --dry-run \"maybe\": it is none, client or server\n"},
		"deployment web -n shop -o wide":            {Code: 2, Err: "error: there is no -o \"wide\" here: it is yaml or json\n"},
		"deployment web -n shop --undo":             {Code: 1, Err: "error: there is no PropagationPolicy shop/web-7fd7ff5bf5, by which Deployment shop/web would have been promoted: --policy-name names another\n"},
	} {
		if diff := cmp.Diff(want, w.direct(t, strings.Fields(call)...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", call, diff)
		}
	}
	want := result{Code: 1, Err: "error: there is no cluster west: flotilla get clusters lists them\n"}
	if diff := cmp.Diff(want, w.call(t, "", "promote", "deployment", "web", "-n", "shop", "-C", "west", "--cluster-kubeconfig", w.Member.Kubeconfig)); diff != "" {
		t.Errorf("a cluster that is none (-want +got):\n%s", diff)
	}
	want = result{Code: 1, Err: "error: the kubeconfig leads to another cluster than east: --cluster-context names the context\n"}
	if diff := cmp.Diff(want, w.call(t, "", "promote", "deployment", "web", "-n", "shop", "-C", "east", "--cluster-kubeconfig", w.Hub.Kubeconfig)); diff != "" {
		t.Errorf("another cluster (-want +got):\n%s", diff)
	}
}

func testDryRun(t *testing.T, w *world) {
	for _, mode := range []string{"client", "server"} {
		got := w.direct(t, "deployment", "web", "-n", "shop", "-d", "--dry-run="+mode)
		golden(t, "promote-dry-run-"+mode+".txt", fmt.Sprintf("exit code %d\n%s%s", got.Code, got.Out, got.Err))
	}
	for _, format := range []string{"yaml", "json"} {
		got := w.direct(t, "deploy/web", "-n", "shop", "-d", "--dry-run", "-o", format)
		golden(t, "promote."+format, got.Out)
		if got.Code != 0 || got.Err != "warning: Secret shop/db is not printed: what it holds stays out of files\n" {
			t.Errorf("%s: code %d, error %q", format, got.Code, got.Err)
		}
	}
	if err := w.absent(t.Context()); err != nil {
		t.Error(err)
	}
}

// absent errs if the hub has anything of the promotion.
func (w *world) absent(ctx context.Context) error {
	var all []error
	for _, obj := range []client.Object{
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "db"}}, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "web"}},
	} {
		if err := w.Hub.Hub.Get(ctx, client.ObjectKey{Namespace: "shop", Name: obj.GetName()}, obj); !apierrors.IsNotFound(err) {
			all = append(all, fmt.Errorf("%T %s: %v", obj, obj.GetName(), err))
		}
	}
	policies := &policyv1alpha1.PropagationPolicyList{}
	if err := w.Hub.Hub.List(ctx, policies, client.InNamespace("shop")); err != nil || len(policies.Items) > 0 {
		all = append(all, fmt.Errorf("%d policies, %v", len(policies.Items), err))
	}
	return errors.Join(all...)
}

var promoted = map[string]bool{"Deployment web": true, "ConfigMap settings": true, "Secret db": true, "ServiceAccount web": true}

func testPromoted(t *testing.T, w *world) {
	before := w.running(t, "shop")
	got := w.direct(t, "deployment", "web", "-n", "shop", "--dependencies")
	golden(t, "promote.txt", fmt.Sprintf("exit code %d\n%s%s", got.Code, got.Out, got.Err))
	w.carried(t)
	if diff := cmp.Diff(before, w.running(t, "shop")); diff != "" {
		t.Errorf("what runs in the member (-before +after):\n%s", diff)
	}
}

// carried waits until everything is the fleet's and applied.
func (w *world) carried(t *testing.T) {
	t.Helper()
	servertest.Eventually(t, "all of it is managed", func(ctx context.Context) error {
		have, err := w.managed(ctx, "shop")
		if diff := cmp.Diff(promoted, have); err != nil || diff != "" {
			return fmt.Errorf("%v %s", err, diff)
		}
		works := &workv1alpha1.WorkList{}
		if err := w.Hub.Hub.List(ctx, works, client.InNamespace(workv1alpha2.ExecutionNamespace("east"))); err != nil {
			return err
		}
		for _, work := range works.Items {
			for _, c := range work.Status.Conditions {
				if c.Type == workv1alpha1.WorkApplied && c.Status != metav1.ConditionTrue && !strings.Contains(c.Message, "Namespace") {
					return fmt.Errorf("Work %s: %s", work.Name, c.Message)
				}
			}
		}
		return nil
	})
	servertest.Eventually(t, "the status is the fleet's", func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		err := w.Hub.Hub.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web"}, d)
		if err == nil && d.Status.ReadyReplicas != 2 {
			err = fmt.Errorf("%d of 2 are ready", d.Status.ReadyReplicas)
		}
		return err
	})
}

func testAgain(t *testing.T, w *world) {
	got := w.direct(t, "deployment", "web", "-n", "shop")
	if got.Code != 1 || !strings.HasPrefix(got.Err, "error: Deployment shop/web in cluster east is managed by a fleet already (Work karmada-es-east/web-") {
		t.Errorf("%+v", got)
	}
	want := result{Out: `Deployment shop/web is in the control plane already
ConfigMap shop/settings is in the control plane already
Secret shop/db is in the control plane already
ServiceAccount shop/web is in the control plane already
PropagationPolicy shop/web-7fd7ff5bf5 carries it to cluster east
`}
	if diff := cmp.Diff(want, w.direct(t, "deployment", "web", "-n", "shop", "--dependencies")); diff != "" {
		t.Errorf("the very same again (-want +got):\n%s", diff)
	}
}

// testCutOff: without the template of the object, which is made last, all is as a promotion
// leaves it that is cut off.
func testCutOff(t *testing.T, w *world) {
	before := w.running(t, "shop")
	if err := w.Hub.Hub.Delete(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, "the Deployment is the member's own", func(ctx context.Context) error {
		have, err := w.managed(ctx, "shop")
		if err == nil && (have["Deployment web"] || !have["ConfigMap settings"]) {
			err = fmt.Errorf("managed are %v", have)
		}
		return err
	})
	want := result{Out: `Deployment shop/web promoted from cluster east
ConfigMap shop/settings is in the control plane already
Secret shop/db is in the control plane already
ServiceAccount shop/web is in the control plane already
PropagationPolicy shop/web-7fd7ff5bf5 carries it to cluster east
`}
	if diff := cmp.Diff(want, w.direct(t, "deployment", "web", "-n", "shop", "--dependencies")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.carried(t)
	if diff := cmp.Diff(before, w.running(t, "shop")); diff != "" {
		t.Errorf("what runs in the member (-before +after):\n%s", diff)
	}
}

func testUndone(t *testing.T, w *world) {
	before := w.running(t, "shop")
	got := w.direct(t, "deployment", "web", "-n", "shop", "--undo", "--dry-run")
	golden(t, "undo-dry-run.txt", fmt.Sprintf("exit code %d\n%s%s", got.Code, got.Out, got.Err))
	got = w.direct(t, "deployment", "web", "-n", "shop", "--undo")
	golden(t, "undo.txt", fmt.Sprintf("exit code %d\n%s%s", got.Code, got.Out, got.Err))
	have, err := w.managed(t.Context(), "shop")
	if err != nil || len(have) > 0 {
		t.Errorf("still marked: %v, %v", have, err)
	}
	if diff := cmp.Diff(before, w.running(t, "shop")); diff != "" {
		t.Errorf("what runs in the member (-before +after):\n%s", diff)
	}
	servertest.Eventually(t, "the control plane has nothing of it", w.absent)
}

func testTwice(t *testing.T, w *world) {
	before := w.running(t, "shop")
	if got := w.direct(t, "deployment", "web", "-n", "shop", "-d", "--policy-name", "mine"); got.Code != 0 || !strings.Contains(got.Out, "PropagationPolicy shop/mine carries it") {
		t.Fatalf("%+v", got)
	}
	w.carried(t)
	if got := w.direct(t, "deployment", "web", "-n", "shop", "--undo", "--policy-name", "mine"); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	if diff := cmp.Diff(before, w.running(t, "shop")); diff != "" {
		t.Errorf("what runs in the member (-before +after):\n%s", diff)
	}
	servertest.Eventually(t, "the control plane has nothing of it", w.absent)
}

func testOtherPolicy(t *testing.T, w *world) {
	policy := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all"}}
	policy.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}}
	policy.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"west"}}
	policy.Spec.Priority = ptr.To[int32](10)
	if err := w.Hub.Hub.Create(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	got := w.direct(t, "deployment", "web", "-n", "shop")
	if got.Code != 1 || !strings.HasPrefix(got.Err, "error: Deployment shop/web would be carried by PropagationPolicy shop/all (") || !strings.Contains(got.Err, "add cluster east there") {
		t.Errorf("%+v", got)
	}
	if got := w.direct(t, "deployment", "web", "-n", "shop", "--auto-create-policy=false"); got.Code != 1 || !strings.HasPrefix(got.Err, "error: Deployment shop/web would not run in cluster east") {
		t.Errorf("%+v", got)
	}
	if err := w.Hub.Hub.Delete(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, "nothing was left", w.absent)
}

func testOverride(t *testing.T, w *world) {
	override := &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mirror"}}
	override.Spec.OverrideRules = []policyv1alpha1.RuleWithCluster{{Overriders: policyv1alpha1.Overriders{
		ImageOverrider: []policyv1alpha1.ImageOverrider{{Component: "Registry", Operator: "add", Value: "mirror.example"}},
	}}}
	if err := w.Hub.Hub.Create(t.Context(), override); err != nil {
		t.Fatal(err)
	}
	want := result{Code: 1, Err: "error: promotion would change Deployment shop/web in cluster east (/spec/template/spec/containers/0/image): --allow-changes promotes it nevertheless\n"}
	if diff := cmp.Diff(want, w.direct(t, "deployment", "web", "-n", "shop")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got := w.direct(t, "deployment", "web", "-n", "shop", "--allow-changes", "--dry-run=server")
	if got.Code != 0 || got.Err != "warning: Deployment shop/web in cluster east would be changed: /spec/template/spec/containers/0/image\n" {
		t.Errorf("%+v", got)
	}
	if err := w.Hub.Hub.Delete(t.Context(), override); err != nil {
		t.Fatal(err)
	}
}

func testScaled(t *testing.T, w *world) {
	scaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "busy"}, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, MaxReplicas: 9,
	}}
	if err := w.Edge.Create(t.Context(), scaler); err != nil {
		t.Fatal(err)
	}
	const found = "HorizontalPodAutoscaler busy scales Deployment shop/web in cluster east, and the fleet would set its replicas back"
	want := result{Code: 1, Err: "error: " + found + ": label it resourcetemplate.karmada.io/retain-replicas=true there first, or --allow-changes promotes it nevertheless\n"}
	if diff := cmp.Diff(want, w.direct(t, "deployment", "web", "-n", "shop", "--dry-run=server")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := w.direct(t, "deployment", "web", "-n", "shop", "--dry-run=server", "--allow-changes"); got.Code != 0 || got.Err != "warning: "+found+"\n" {
		t.Errorf("%+v", got)
	}
	if err := w.Edge.Delete(t.Context(), scaler); err != nil {
		t.Fatal(err)
	}
}

const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.sea.example}
spec:
  group: sea.example
  scope: Namespaced
  names: {kind: Boat, plural: boats, singular: boat}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

func testNoKind(t *testing.T, w *world) {
	inMember := func(in string, args ...string) result {
		return call(t, in, append(args, "--kubeconfig", w.Member.Kubeconfig)...)
	}
	if got := inMember(definition, "apply", "-f", "-"); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	boat := "apiVersion: sea.example/v1\nkind: Boat\nmetadata: {name: ark, namespace: shop}\nspec: {animals: 2}\n"
	servertest.Eventually(t, "the member serves boats", func(context.Context) error {
		if got := inMember(boat, "apply", "-f", "-"); got.Code != 0 {
			return errors.New(got.Err)
		}
		return nil
	})
	want := result{Code: 1, Err: "error: the control plane does not serve Boat.sea.example: apply the CustomResourceDefinition boats.sea.example first (flotilla promote crd boats.sea.example -C east)\n"}
	if diff := cmp.Diff(want, w.direct(t, "boat", "ark", "-n", "shop")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := w.direct(t, "crd", "boats.sea.example"); got.Code != 0 || !strings.Contains(got.Out, "ClusterPropagationPolicy boats.sea.example-") {
		t.Fatalf("the definition: %+v", got)
	}
	servertest.Eventually(t, "the boat is taken over", func(context.Context) error {
		if got := w.direct(t, "boat", "ark", "-n", "shop"); got.Code != 0 {
			return errors.New(got.Err)
		}
		return nil
	})
}
