// Package polling measures what sources cost that do not change, and how long a push takes to the members.
//
// In go a control plane, its members and a Git server; out come how many requests and writes a minute of a thousand
// sources takes, what they cost, and the time from a webhook until a change stands in every member.
package polling

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/bench/results"
	"github.com/flotilla-io/flotilla/bench/usage"
	"github.com/flotilla-io/flotilla/internal/gitserver"
	"github.com/flotilla-io/flotilla/internal/localfleet"
)

// Fleet is what is measured.
type Fleet struct {
	Hub     *localfleet.Process
	Client  client.WithWatch
	Members map[string]kubernetes.Interface
	Git     *gitserver.Server
	// Dir is for work trees.
	Dir string
	// Receiver is the address that webhooks are sent to.
	Receiver string
	// Quiet waits until nothing was written for a time, and returns the revision then.
	Quiet func(ctx context.Context, still time.Duration) (int64, error)
}

const (
	// namespace is one where Kustomizations act as the control plane.
	namespace = "flux-system"
	branch    = "main"
	sources   = 1000
	writers   = 8
	still     = 2 * time.Second
	longest   = 10 * time.Minute
	// minute is how often the sources are looked at, and for how long they are watched.
	minute = time.Minute
	pushes = 30
	token  = "bench"
)

// work is a work tree of a repository.
type work struct {
	Fleet
	name, tree string
}

func (f Fleet) repository(ctx context.Context, name string) (work, error) {
	out := work{f, name, filepath.Join(f.Dir, name)}
	if err := f.Git.Create(ctx, name); err != nil {
		return out, err
	}
	if err := os.MkdirAll(out.tree, 0o700); err != nil {
		return out, fmt.Errorf("make the work tree: %w", err)
	}
	_, err := gitserver.Git(ctx, out.tree, "clone", "--quiet", f.Git.URL(name), ".")
	return out, err
}

func (w work) commit(ctx context.Context, files map[string]string) error {
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(w.tree, name), []byte(content), 0o600); err != nil {
			return fmt.Errorf("write to the work tree: %w", err)
		}
	}
	for _, args := range [][]string{{"add", "."}, {"commit", "--quiet", "-m", "change"}, {"push", "--quiet", "origin", "HEAD:" + branch}} {
		if _, err := gitserver.Git(ctx, w.tree, args...); err != nil {
			return err
		}
	}
	return nil
}

// space makes the namespace.
func (f Fleet) space(ctx context.Context) error {
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := f.Client.Create(ctx, space); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("make the namespace: %w", err)
	}
	return nil
}

func (f Fleet) source(name, of string, interval time.Duration) *sourcev1.GitRepository {
	return &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       sourcev1.GitRepositorySpec{URL: f.Git.URL(of), Interval: metav1.Duration{Duration: interval}, Reference: &sourcev1.GitRepositoryRef{Branch: branch}},
	}
}

// Measure has a thousand sources that do not change be looked at once in a minute.
func Measure(ctx context.Context, f Fleet, r *results.Report) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	empty, err := usage.ResidentMiB(f.Hub.PID())
	if err != nil {
		return err
	}
	if err := f.space(ctx); err != nil {
		return err
	}
	if err := f.measureAlike(ctx, r); err != nil {
		return err
	}
	first, err := f.repository(ctx, "unchanged")
	if err != nil {
		return err
	}
	if err := first.commit(ctx, map[string]string{"kustomization.yaml": "resources: []\n"}); err != nil {
		return err
	}
	for n := range sources { // each is a repository of its own to those who read it
		if err := f.Git.Alias(fmt.Sprintf("unchanged-%04d", n), "unchanged"); err != nil {
			return err
		}
	}
	began := time.Now()
	if err := f.follow(ctx, "unchanged", sources, func(n int) string { return fmt.Sprintf("unchanged-%04d", n) }); err != nil {
		return err
	}
	r.Note("sources", "1,000 sources: all stored after", time.Since(began).Seconds(), "s")
	before, err := f.Quiet(ctx, still)
	if err != nil {
		return err
	}
	spent, err := usage.CPUSeconds(f.Hub.PID())
	if err != nil {
		return err
	}
	asked, began := f.Git.Requests(), time.Now()
	select {
	case <-ctx.Done():
		return fmt.Errorf("watch the sources: %w", context.Cause(ctx))
	case <-time.After(minute):
	}
	requests, took := f.Git.Requests()-asked, time.Since(began)
	cpu, err := usage.CPUSeconds(f.Hub.PID())
	if err != nil {
		return err
	}
	after, err := f.Quiet(ctx, still)
	if err != nil {
		return err
	}
	resident, err := usage.ResidentMiB(f.Hub.PID())
	if err != nil {
		return err
	}
	// Intervals differ by a twentieth, so that a minute has a twentieth more or less.
	r.AtMost("sources", "1,000 unchanged sources: looked at once in", took.Seconds()*sources/float64(requests), "s", 63)
	r.AtMost("sources", "1,000 unchanged sources: requests in a minute, each", float64(requests)/sources, "requests", 1.1)
	r.AtMost("sources", "1,000 unchanged sources: writes", float64(after-before), "writes", 0)
	r.Note("sources", "1,000 unchanged sources: CPU time of the control plane in a minute", cpu-spent, "s")
	r.Note("sources", "1,000 unchanged sources: resident memory of the control plane", resident, "MiB")
	r.AtMost("sources", "1,000 unchanged sources: resident memory, more than of the control plane without any", resident-empty, "MiB", 300)
	return nil
}

// follow makes so many sources, each of a repository, and waits until each has its artifact.
func (f Fleet) follow(ctx context.Context, name string, count int, of func(n int) string) error {
	var group errgroup.Group
	group.SetLimit(writers)
	for n := range count {
		group.Go(func() error {
			return f.Client.Create(ctx, f.source(fmt.Sprintf("%s-%04d", name, n), of(n), minute))
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("make the sources: %w", err)
	}
	return wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		var list sourcev1.GitRepositoryList
		if err := f.Client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return false, fmt.Errorf("list the sources: %w", err)
		}
		ready := 0
		for _, s := range list.Items {
			if apimeta.IsStatusConditionTrue(s.Status.Conditions, meta.ReadyCondition) {
				ready++
			}
		}
		return ready == count, nil
	})
}

// MeasurePushes times a change from its webhook until it stands in every member.
func MeasurePushes(ctx context.Context, f Fleet, r *results.Report) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	if err := f.space(ctx); err != nil {
		return err
	}
	repo, err := f.repository(ctx, "pushed")
	if err != nil {
		return err
	}
	if err := repo.commit(ctx, map[string]string{"kustomization.yaml": "resources: [config.yaml, policy.yaml]\n", "config.yaml": config(0), "policy.yaml": policy}); err != nil {
		return err
	}
	path, err := repo.receive(ctx)
	if err != nil {
		return err
	}
	if err := f.stands(ctx, 0); err != nil {
		return err
	}
	var times []float64
	for n := 1; n <= pushes; n++ {
		if err := repo.commit(ctx, map[string]string{"config.yaml": config(n)}); err != nil {
			return err
		}
		if _, err := f.Quiet(ctx, still); err != nil {
			return err
		}
		began := time.Now()
		if err := f.notify(ctx, path); err != nil {
			return err
		}
		if err := f.stands(ctx, n); err != nil {
			return err
		}
		times = append(times, float64(time.Since(began).Milliseconds()))
	}
	slices.Sort(times)
	r.Note("5", "push webhook → last member, p50", times[len(times)/2], "ms")
	r.AtMost("5", "push webhook → last member, longest of 30", times[len(times)-1], "ms", 1000)
	return r.Raw("pushes", times)
}

const policy = `apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: pushed, namespace: default}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: pushed}]
`

func config(n int) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: pushed, namespace: default}\ndata: {is: \"%d\"}\n", n)
}

// receive makes the source, who applies it and the Receiver, and returns the path to which pushes are sent.
func (w work) receive(ctx context.Context) (string, error) {
	receiver := &notificationv1.Receiver{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: w.name}}
	receiver.Spec.Type, receiver.Spec.SecretRef = notificationv1.GitHubReceiver, &meta.LocalObjectReference{Name: w.name}
	receiver.Spec.Resources = []notificationv1.ReceiverResource{{CrossNamespaceObjectReference: notificationv1.CrossNamespaceObjectReference{Kind: sourcev1.GitRepositoryKind, Name: w.name}}}
	for _, object := range []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: w.name}, StringData: map[string]string{"token": token}},
		w.source(w.name, w.name, time.Hour),
		&kustomizev1.Kustomization{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: w.name},
			Spec: kustomizev1.KustomizationSpec{
				SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: sourcev1.GitRepositoryKind, Name: w.name}, Prune: true, Interval: metav1.Duration{Duration: time.Hour},
			},
		},
		receiver,
	} {
		if err := w.Client.Create(ctx, object); err != nil {
			return "", fmt.Errorf("make what follows the repository: %w", err)
		}
	}
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		err := w.Client.Get(ctx, client.ObjectKeyFromObject(receiver), receiver)
		return err == nil && receiver.Status.WebhookPath != "", err
	})
	if err != nil {
		return "", fmt.Errorf("wait for the Receiver: %w", err)
	}
	return receiver.Status.WebhookPath, nil
}

// notify sends what a forge sends of a push.
func (f Fleet) notify(ctx context.Context, path string) error {
	body := []byte(`{"ref":"refs/heads/` + branch + `"}`)
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write(body)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+f.Receiver+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("tell of the push: %w", err)
	}
	req.Header.Set("X-Github-Event", "push")
	req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("tell of the push: %w", err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("tell of the push: %s: %s", resp.Status, text)
	}
	return nil
}

// stands waits until a change stands in every member.
func (f Fleet) stands(ctx context.Context, n int) error {
	group, ctx := errgroup.WithContext(ctx)
	for name, member := range f.Members {
		group.Go(func() error {
			err := wait.PollUntilContextCancel(ctx, 5*time.Millisecond, true, func(ctx context.Context) (bool, error) {
				got, err := member.CoreV1().ConfigMaps("default").Get(ctx, "pushed", metav1.GetOptions{})
				if apierrors.IsNotFound(err) {
					return false, nil
				}
				return err == nil && got.Data["is"] == fmt.Sprint(n), err
			})
			if err != nil {
				return fmt.Errorf("wait for change %d in %s: %w", n, name, err)
			}
			return nil
		})
	}
	return group.Wait()
}
