package management_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/commandtest"
	"github.com/flotilla-io/flotilla/cmd/flotilla/management"
	"github.com/flotilla-io/flotilla/controlplane/fleettest"
	"github.com/flotilla-io/flotilla/controlplane/member"
	"github.com/flotilla-io/flotilla/controlplane/member/membertest"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/join"
	"github.com/flotilla-io/flotilla/internal/ownership"
	"github.com/flotilla-io/flotilla/internal/setback"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
	"github.com/flotilla-io/flotilla/reconciler"
)

// TestPrune: what was applied from here and no Work names is shown, and removed once
// somebody says so; nothing else is touched, of whatever kind. What was left when the
// cluster had another name is nobody's, unless the cluster of that name asks for it.
func TestPrune(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a control plane and a member")
	}
	hub := hubs.Env(t)
	at := membertest.Start(t, member.Options{Name: "east", Nodes: 1})
	edge, err := client.New(at.Config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	stop := hub.StartLoops(t, func(ctx context.Context, mgr ctrl.Manager) error {
		return reconciler.Register(ctx, mgr, reconciler.Options{Controllers: []string{"cluster", "namespace", "execution", "unifiedauth"}})
	})
	t.Cleanup(func() { _ = stop() })
	for _, err := range []error{
		join.Join(t.Context(), join.Options{Name: "east", Hub: hub.Hub, Member: edge, MemberConfig: at.Config}),
		join.Ready(t.Context(), hub.Hub, "east", fleettest.ReadyTimeout),
		hub.Hub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"kept", "lost"} {
		carry(t, hub, name)
	}
	lost := &corev1.ConfigMap{}
	if err := edge.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "lost"}, lost); err != nil {
		t.Fatal(err)
	}
	copied := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "copy", Labels: lost.Labels, Annotations: lost.Annotations}}
	if err := edge.Create(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil { // the Work vanishes without its object
		t.Fatal(err)
	}
	stop = func() error { return nil }
	work := byHand("lost")
	if err := hub.Hub.Patch(t.Context(), work, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	if err := hub.Hub.Delete(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	asked := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: workv1alpha2.ExecutionNamespace("former"), Name: "asked"}}
	asked.Spec.Workload.Manifests = manifests("asked")
	for _, err := range []error{
		hub.Hub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: asked.Namespace}}), hub.Hub.Create(t.Context(), asked),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"left", "asked"} { // as they were when the cluster had another name
		notes := maps.Clone(lost.Annotations)
		notes[workv1alpha2.WorkNamespaceAnnotation], notes[workv1alpha2.WorkNameAnnotation] = asked.Namespace, name
		if err := edge.Apply(t.Context(), corev1apply.ConfigMap(name, "shop").WithLabels(lost.Labels).WithAnnotations(notes), client.FieldOwner(ownership.FieldManager)); err != nil {
			t.Fatal(err)
		}
	}

	prune := func(in string, args ...string) commandtest.Result {
		t.Helper()
		return commandtest.Run(t.Context(), commandtest.Root(management.Commands("")), in, append([]string{"prune", "--cluster", "east", "--kubeconfig", hub.Kubeconfig}, args...)...)
	}
	there := func(name string) bool {
		t.Helper()
		err := edge.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, &corev1.ConfigMap{})
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return !apierrors.IsNotFound(err)
	}
	list := "KIND       NAMESPACE  NAME  WORK\nConfigMap  shop       left  karmada-es-former/left\nConfigMap  shop       lost  lost\n"
	for what, tc := range map[string]struct {
		result commandtest.Result
		code   int
	}{
		"a dry run":       {prune("", "--dry-run"), 0},
		"somebody's no":   {prune("n\n"), 1},
		"nobody's answer": {prune(""), 1},
	} {
		if code, out, errOut := tc.result.All(); code != tc.code || out != list || !there("lost") {
			t.Errorf("%s: code %d, there %t\n%s%s", what, code, there("lost"), out, errOut)
		}
	}
	const unanswered = "Remove what is listed from east? [y/N] \nerror: nothing was removed: say --yes, or y at the question\n"
	if _, _, errOut := prune("").All(); errOut != unanswered {
		t.Errorf("nobody's answer: %q", errOut)
	}
	if warnings := standardError(t, func() { prune("", "--dry-run") }); warnings != "" {
		t.Errorf("the member's warnings about kinds that are listed: %s", warnings)
	}
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}}
	mark := func(mark *hubclaim.Mark) {
		t.Helper()
		if err := edge.Get(t.Context(), client.ObjectKeyFromObject(system), system); err != nil {
			t.Fatal(err)
		}
		claim, err := hubclaim.Parse(system.Annotations[clusterv1alpha1.ClaimAnnotation])
		if err != nil {
			t.Fatal(err)
		}
		claim.Mark = mark
		system.Annotations[clusterv1alpha1.ClaimAnnotation] = claim.Encode()
		if err := edge.Update(t.Context(), system); err != nil {
			t.Fatal(err)
		}
	}
	mark(&hubclaim.Mark{Run: 9, ID: "lost", Revision: 7})
	if code, out, errOut := prune("", "--dry-run").All(); code != 0 || out != list || !strings.HasPrefix(errOut, "warning: nothing would be removed: ") {
		t.Errorf("a dry run before the control plane has looked: code %d\n%s%s", code, out, errOut)
	}
	if code, out, errOut := prune("", "--yes").All(); code != 1 || !strings.Contains(errOut, "flotilla resume hub") || !there("lost") {
		t.Errorf("before the control plane has looked: code %d, there %t\n%s%s", code, there("lost"), out, errOut)
	}
	mark(nil)
	system = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}}
	history, _ := hubclaim.History{}.WithHold("east", &hubclaim.Mark{Run: 1, ID: "lost", Revision: 7}, 5, time.Now())
	if err := hub.Hub.Patch(t.Context(), system, client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, clusterv1alpha1.HistoryAnnotation, history.Encode()))); err != nil {
		t.Fatal(err)
	}
	if code, out, errOut := prune("", "--dry-run").All(); code != 0 || out != list || !strings.HasPrefix(errOut, "warning: nothing would be removed: ") {
		t.Errorf("a dry run while the control plane waits: code %d\n%s%s", code, out, errOut)
	}
	if code, out, errOut := prune("", "--yes").All(); code != 1 || !strings.Contains(errOut, "flotilla resume hub") || !there("lost") {
		t.Errorf("while the control plane waits: code %d, there %t\n%s%s", code, there("lost"), out, errOut)
	}
	if err := setback.New(hub.Hub, hub.Hub, nil).Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	code, out, errOut := prune("", "--yes", "-o", "json").All()
	var got struct {
		Cluster string
		Objects []struct{ Kind, Namespace, Name, Work, Outcome string }
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 {
		t.Fatalf("code %d, %v:\n%s%s", code, err, out, errOut)
	}
	if diff := cmp.Diff("{east [{ConfigMap shop left karmada-es-former/left removed} {ConfigMap shop lost lost removed}]}", fmt.Sprint(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, want := range map[string]bool{"lost": false, "left": false, "kept": true, "copy": true, "asked": true} {
		if there(name) != want {
			t.Errorf("%s is there: %t, want %t", name, !want, want)
		}
	}
	if _, out, _ := prune("", "--dry-run").All(); !strings.Contains(out, "nothing that nobody asks for") {
		t.Errorf("afterwards: %s", out)
	}
}

// standardError returns what a call writes to this process' standard error, which is
// where warnings of servers go.
func standardError(t *testing.T, call func()) string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	before := os.Stderr
	os.Stderr = file
	defer func() { os.Stderr = before }()
	call()
	content, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func byHand(name string) *workv1alpha1.Work {
	return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: workv1alpha2.ExecutionNamespace("east"), Name: name}}
}

func manifests(name string) []workv1alpha1.Manifest {
	return []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: fmt.Appendf(nil,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":%q},"data":{"key":"1"}}`, name)}}}
}

// carry writes a Work with a ConfigMap of its name, and waits until the member has it.
func carry(t *testing.T, hub *servertest.Env, name string) {
	t.Helper()
	w := byHand(name)
	w.Spec.Workload.Manifests = manifests(name)
	if err := hub.Hub.Create(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, name+" is applied", func(ctx context.Context) error {
		if err := hub.Hub.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(w.Status.Conditions, workv1alpha1.WorkApplied) {
			return fmt.Errorf("conditions: %v", w.Status.Conditions)
		}
		return nil
	})
}
