package telemetry_test

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/flotilla-io/flotilla/internal/telemetry"
)

// TestScreen: a screen has what matters, in short, and each fault once; the log has all.
func TestScreen(t *testing.T) {
	var log, screen bytes.Buffer
	logger, err := (&telemetry.LogOptions{Screen: &screen}).Start(&log)
	if err != nil {
		t.Fatal(err)
	}
	cluster := logger.WithValues("controller", "cluster", "controllerGroup", "cluster.karmada.io", "namespace", "", "name", "east", "reconcileID", "1")
	cluster.Info("Cluster turned", "ready", metav1.ConditionTrue, "reason", "ClusterReady")
	cluster.Info("Cluster turned", "ready", metav1.ConditionFalse, "reason", "NotReachable")
	cluster.Info("Cluster turned", "ready", metav1.ConditionTrue, "reason", "ClusterReady")
	cluster.Info("Applied", "kind", "Deployment")
	app := logger.WithValues("controller", "kustomization", "namespace", "shop", "name", "web")
	for range 3 {
		app.Error(errors.New("broken\nin two lines"), "Reconciler error")
	}
	app.V(1).Info("a decision")
	klog.Background().Error(errors.New("no such kind"), "Failed to watch")
	got := regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d  `).ReplaceAllString(screen.String(), "")
	want := "Cluster turned ready=True reason=ClusterReady (east)\nCluster turned ready=False reason=NotReachable (east)\n" +
		"Cluster turned ready=True reason=ClusterReady (east)\nReconciler error: broken in two lines (shop/web)\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the screen (-want +got):\n%s", diff)
	}
	if lines := strings.Count(log.String(), "\n"); lines != 8 {
		t.Errorf("the log has %d lines, want 8:\n%s", lines, log.String())
	}
}
