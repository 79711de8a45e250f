// Package artifacts measures how fast artifacts of a registry are fetched.
//
// In go a control plane and a registry in this process; out comes how many artifacts a second it fetches and stores, when a thousand
// OCIRepositories that follow a tag each find another artifact there.
package artifacts

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/bench/results"
	"github.com/flotilla-io/flotilla/bench/usage"
	"github.com/flotilla-io/flotilla/internal/localfleet"
	"github.com/flotilla-io/flotilla/internal/ociserver"
)

// Fleet is what is measured.
type Fleet struct {
	Hub    *localfleet.Process
	Client client.Client
}

const (
	namespace = "flux-system"
	sources   = 1000
	writers   = 8
	files     = 10
	perSecond = 50
	longest   = 10 * time.Minute
)

// Measure has a thousand OCIRepositories fetch an artifact each.
func Measure(ctx context.Context, f Fleet, r *results.Report) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	server := ociserver.New()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	serving := &http.Server{Handler: server, ReadHeaderTimeout: time.Minute}
	go func() { _ = serving.Serve(listener) }() // until it is closed
	defer serving.Close()
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := f.Client.Create(ctx, space); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("make the namespace: %w", err)
	}
	for n := range sources {
		if _, err := server.Push(ctx, "fleet", tag(n), content(n), nil); err != nil {
			return err
		}
	}
	server.Requests()
	spent, err := usage.CPUSeconds(f.Hub.PID())
	if err != nil {
		return err
	}
	began := time.Now()
	if err := f.follow(ctx, "oci://"+listener.Addr().String()+"/fleet"); err != nil {
		return err
	}
	took, requests := time.Since(began).Seconds(), len(server.Requests())
	cpu, err := usage.CPUSeconds(f.Hub.PID())
	if err != nil {
		return err
	}
	r.AtLeast("oci", "1,000 artifacts: fetched in a second", sources/took, "artifacts", perSecond)
	r.AtMost("oci", "1,000 artifacts: requests for each", float64(requests)/sources, "requests", 3)
	r.Note("oci", "1,000 artifacts: CPU time of the control plane", cpu-spent, "s")
	return nil
}

func tag(n int) string { return fmt.Sprintf("v%d", n) }

// content are the files of an artifact, which no other has.
func content(n int) map[string]string {
	out := map[string]string{}
	for i := range files {
		out[fmt.Sprintf("app/%d.yaml", i)] = fmt.Sprintf("# %d of %d\n%s", i, n, strings.Repeat("key: value\n", 100))
	}
	return out
}

// follow makes the sources, and waits until each has its artifact.
func (f Fleet) follow(ctx context.Context, url string) error {
	var group errgroup.Group
	group.SetLimit(writers)
	for n := range sources {
		group.Go(func() error {
			return f.Client.Create(ctx, &sourcev1.OCIRepository{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("fetched-%04d", n)},
				Spec: sourcev1.OCIRepositorySpec{
					URL: url, Insecure: true, Interval: metav1.Duration{Duration: time.Hour}, Reference: &sourcev1.OCIRepositoryRef{Tag: tag(n)},
				},
			})
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("make the sources: %w", err)
	}
	return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var list sourcev1.OCIRepositoryList
		if err := f.Client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return false, fmt.Errorf("list the sources: %w", err)
		}
		ready := 0
		for i := range list.Items {
			if apimeta.IsStatusConditionTrue(list.Items[i].Status.Conditions, meta.ReadyCondition) {
				ready++
			}
		}
		return ready == sources, nil
	})
}
