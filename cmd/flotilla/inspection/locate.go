package inspection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/progress"
	"github.com/flotilla-io/flotilla/internal/command"
)

// locate returns the cluster for a command about pods: the named one, or else the only one that
// has the object.
func locate(ctx context.Context, f *fleet.Flags, scope *fleet.Scope, errOut io.Writer, object []string) (string, error) {
	if len(scope.Named()) > 0 || scope.Hub() {
		return scope.One()
	}
	if len(object) == 0 {
		return "", command.Usage(fmt.Errorf("--cluster is missing: name the cluster to ask"))
	}
	clusters, err := scope.Members(ctx, f)
	if err != nil {
		return "", err
	}
	namespace, _, err := f.Factory().ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fleet.Completed(err)
	}
	waiting := progress.New(errOut, clusters)
	answers := fleet.Each(ctx, clusters, func(_ context.Context, cluster string) (bool, error) {
		defer waiting.Done(cluster)
		return find(f, cluster, namespace, object)
	})
	waiting.End()
	if err := ctx.Err(); err != nil {
		return "", err
	}
	what := strings.Join(object, " ")
	cluster, err := only(answers, errOut, what, namespace)
	var none *nowhere
	if !errors.As(err, &none) || isPod(what) {
		return cluster, err
	}
	if there, _ := find(f, fleet.Hub, namespace, object); there {
		return "", fmt.Errorf("%s in namespace %s is on the control plane, and in no cluster: flotilla explain %[1]s -n %[2]s says why", what, namespace)
	}
	return "", err
}

// find looks for an object on a server, and reports whether it is there.
func find(f *fleet.Flags, server, namespace string, object []string) (bool, error) {
	b := f.Server(server, fleet.Timeout).NewBuilder().Unstructured().NamespaceParam(namespace).DefaultNamespace()
	if len(object) == 1 {
		b.ResourceNames("pods", object[0])
	} else {
		b.ResourceNames(object[0], object[1])
	}
	_, err := b.Do().Infos()
	if isAbsent(err) {
		return false, nil
	}
	return err == nil, err
}

// nowhere is the error that no cluster has an object.
type nowhere struct{ object, namespace string }

func (n *nowhere) Error() string {
	kind := "pods"
	if !isPod(n.object) {
		kind, _, _ = strings.Cut(strings.Replace(n.object, " ", "/", 1), "/")
	}
	return fmt.Sprintf("no cluster has %[1]s in namespace %[2]s: flotilla get %[3]s -n %[2]s -s %[4]s lists what there is", n.object, n.namespace, kind, fleet.ScopeMembers)
}

// only returns the cluster that has the object.
func only(answers []fleet.Answer[bool], errOut io.Writer, object, namespace string) (string, error) {
	var have, away []string
	for _, a := range answers {
		switch {
		case a.Err != nil:
			warn(errOut, a.Cluster, a.Err)
			away = append(away, a.Cluster)
		case a.Value:
			have = append(have, a.Cluster)
		}
	}
	switch {
	case len(have) == 1 && len(away) > 0 && !isPod(object):
		// A workload often runs under one name in several clusters.
		return "", fmt.Errorf("%s is in cluster %s, and may be in others that do not answer (%s): name one with --cluster", object, have[0], strings.Join(away, ", "))
	case len(have) == 1:
		_, _ = fmt.Fprintf(errOut, "in cluster %s\n", have[0])
		return have[0], nil
	case len(have) > 1:
		return "", command.Usage(fmt.Errorf("%s is in several clusters (%s): name one with --cluster", object, strings.Join(have, ", ")))
	case len(away) > 0:
		return "", unanswered(away, len(answers))
	default:
		return "", &nowhere{object, namespace}
	}
}

// isPod reports whether the object is a pod, whose name hardly exists in another cluster.
func isPod(object string) bool {
	kind, _, found := strings.Cut(strings.Replace(object, " ", "/", 1), "/")
	return !found || kind == "pod" || kind == "pods" || kind == "po"
}
