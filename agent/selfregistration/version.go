package selfregistration

import (
	"context"
	"fmt"
	"regexp"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// fits refuses a hub of a version that this program does not work with. One that
// has no version fits.
func (r *Registration) fits(ctx context.Context) error {
	info := &corev1.ConfigMap{}
	err := r.options.Hub.Get(ctx, client.ObjectKey{Namespace: workv1alpha2.NamespaceKarmadaSystem, Name: clusterv1alpha1.HubInfoName}, info)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the version of the hub: %w", err)
	}
	return Fits(r.options.Version, info.Data[clusterv1alpha1.HubInfoVersionKey])
}

// mostAhead is by how many minor versions a hub may be ahead of its agents.
const mostAhead = 2

// Fits reports whether an agent of one version works with a hub of another: one that
// is not older, and at most two minor versions newer. What is no version, such
// as a build from a work tree, fits.
func Fits(agent, hub string) error {
	own, ok := parse(agent)
	theirs, also := parse(hub)
	if !ok || !also {
		return nil
	}
	switch {
	case theirs.major < own.major, theirs.major == own.major && theirs.minor < own.minor:
		return fmt.Errorf("%w: the hub has version %s and the agent %s: upgrade the hub first, or use an agent of its version", ErrRefused, hub, agent)
	case theirs.major > own.major, theirs.minor > own.minor+mostAhead:
		return fmt.Errorf("%w: the hub has version %s and the agent %s, which is too old for it: upgrade the agent", ErrRefused, hub, agent)
	}
	return nil
}

type version struct{ major, minor int }

var released = regexp.MustCompile(`^v?(\d{1,6})\.(\d{1,6})\.\d{1,6}([-+ ].*)?$`)

func parse(text string) (version, bool) {
	parts := released.FindStringSubmatch(text)
	if parts == nil {
		return version{}, false
	}
	major, err := strconv.Atoi(parts[1])
	minor, also := strconv.Atoi(parts[2])
	return version{major, minor}, err == nil && also == nil
}
