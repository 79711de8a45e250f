package selfregistration_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/agent/selfregistration"
	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/join"
)

var shared servertest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// TestAClusterOfAnotherHub is not registered. One that is registered already, and was
// lost to another hub, is: its conditions say so. The hub is no member of itself.
func TestAClusterOfAnotherHub(t *testing.T) {
	env, member := shared.Env(t), servertest.New(t)
	claim := func(text string) {
		t.Helper()
		patch := `{"metadata":{"annotations":{"` + clusterv1alpha1.ClaimAnnotation + `":` + text + `}}}`
		system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}}
		if err := member.Hub.Patch(t.Context(), system, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	const another = `"{\"hub\":\"h2\",\"cluster\":\"east\",\"address\":\"https://two\"}"`
	north := selfregistration.New(selfregistration.Options{Name: "north", Hub: env.Hub, Member: member.Hub, Report: []string{selfregistration.None}})
	registered := func() bool {
		t.Helper()
		err := env.Hub.Get(t.Context(), client.ObjectKey{Name: "north"}, &clusterv1alpha1.Cluster{})
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return !apierrors.IsNotFound(err)
	}

	itself := selfregistration.New(selfregistration.Options{Name: "north", Hub: env.Hub, Member: env.Hub, Report: []string{selfregistration.None}})
	if err := itself.Register(t.Context()); !errors.Is(err, selfregistration.ErrRefused) || !errors.Is(err, join.ErrItself) {
		t.Errorf("the hub itself: %v", err)
	}
	claim(another)
	err := north.Register(t.Context())
	if !errors.Is(err, selfregistration.ErrRefused) || !strings.Contains(err.Error(), "at https://two") || !strings.Contains(err.Error(), "--take-over is a flag of flotilla register") {
		t.Errorf("a cluster of another hub: %v", err)
	}
	if registered() {
		t.Error("it is registered")
	}
	claim("null")
	if err := north.Register(t.Context()); err != nil || !registered() {
		t.Errorf("a cluster of nobody: %v", err)
	}
	claim(another)
	if err := north.Register(t.Context()); err != nil {
		t.Errorf("one that was lost to another hub: %v", err)
	}
}
