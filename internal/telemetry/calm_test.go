package telemetry_test

import (
	"bytes"
	"errors"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/klog/v2"

	"github.com/flotilla-io/flotilla/internal/telemetry"
)

// TestHealthyStartsAreShort: what every start and stop brings is detail, and what is
// wrong is not.
func TestHealthyStartsAreShort(t *testing.T) {
	const own = "level=INFO msg=\"this replica holds the lease: its loops run\" controller=apply\n" +
		"level=ERROR msg=\"Reconciler error\" controller=apply err=broken\n" +
		"level=ERROR msg=\"Unhandled Error\" logger=UnhandledError err=\"something else\"\n"
	const routine = "level=DEBUG+3 msg=\"Starting EventSource\" controller=apply source=x\nlevel=DEBUG+3 msg=\"All workers finished\" controller=apply\n"
	const other = "level=ERROR msg=\"Error while syncing ConfigMap\" logger=UnhandledError err=\"no room\"\n"
	const passing = "level=DEBUG+3 msg=\"Unhandled Error\" logger=UnhandledError err=\"timed out waiting for dependency graph builder sync during GC sync\"\n"
	const first = "level=DEBUG+3 msg=\"Unable to sync caches\" logger=UnhandledError\n" +
		"level=DEBUG+3 msg=\"Found stale data, removed previous endpoints on kubernetes service, apiserver didn't exit successfully previously\" logger=UnhandledError\n" +
		"level=DEBUG+3 msg=\"Error while syncing ConfigMap\" logger=UnhandledError err=\"namespaces \\\"kube-system\\\" not found\"\n"
	const givenUp = "level=DEBUG+3 msg=\"Post-timeout activity\" logger=UnhandledError method=PATCH\n" +
		"level=DEBUG+3 msg=\"Timeout or abort while handling\" logger=UnhandledError method=PATCH\n" +
		"level=DEBUG+3 msg=\"Unhandled Error\" logger=UnhandledError err=\"apiserver was unable to write a JSON response: http: Handler timeout\"\n"
	for verbosity, want := range map[int]string{0: own + other, 1: routine + own + other, 4: routine + passing + own + first + other + givenUp} {
		var out bytes.Buffer
		logger, err := (&telemetry.LogOptions{Verbosity: verbosity}).Start(&out)
		if err != nil {
			t.Fatal(err)
		}
		controller, libraries := logger.WithValues("controller", "apply"), klog.Background().WithName("UnhandledError")
		controller.Info("Starting EventSource", "source", "x")
		controller.Info("All workers finished")
		libraries.Error(errors.New("timed out waiting for dependency graph builder sync during GC sync"), "Unhandled Error")
		controller.Info("this replica holds the lease: its loops run")
		controller.Error(errors.New("broken"), "Reconciler error")
		libraries.Error(errors.New("something else"), "Unhandled Error")
		libraries.Error(nil, "Unable to sync caches")
		libraries.Error(nil, "Found stale data, removed previous endpoints on kubernetes service, apiserver didn't exit successfully previously")
		libraries.Error(errors.New(`namespaces "kube-system" not found`), "Error while syncing ConfigMap")
		libraries.Error(errors.New("no room"), "Error while syncing ConfigMap")
		libraries.Error(nil, "Post-timeout activity", "method", "PATCH")
		libraries.Error(nil, "Timeout or abort while handling", "method", "PATCH")
		libraries.Error(errors.New("apiserver was unable to write a JSON response: http: Handler timeout"), "Unhandled Error")
		got := regexp.MustCompile(`(?m)^time=\S+ `).ReplaceAllString(out.String(), "")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-v %d (-want +got):\n%s", verbosity, diff)
		}
	}
}
