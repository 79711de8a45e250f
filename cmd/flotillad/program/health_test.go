package program

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/flotilla-io/flotilla/controlplane/servertest"
)

// TestHealth: the loops answer at --health-probe-bind-address, as the flag says.
func TestHealth(t *testing.T) {
	env := servertest.New(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	loops, flags := loopOptions{}, pflag.NewFlagSet("", pflag.ContinueOnError)
	loops.addFlags(flags)
	if err := flags.Parse([]string{"--health-probe-bind-address", address}); err != nil {
		t.Fatal(err)
	}
	if err := loops.validate(nil); err != nil {
		t.Fatal(err)
	}
	loops.dataDir, loops.leaderElect, loops.log = t.TempDir(), true, logr.Discard()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- loops.run(ctx, env.Config) }()
	for _, path := range []string{"/healthz", "/readyz"} {
		var last error
		err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			last = answers(ctx, "http://"+address+path)
			return last == nil, nil
		})
		if err != nil {
			t.Errorf("%s: %v", path, last)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("the loops ended with %v", err)
	}
}

func answers(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != http.StatusOK || string(body) != "ok") {
		return fmt.Errorf("%s: %q", resp.Status, body)
	}
	return err
}
