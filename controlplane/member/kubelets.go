package member

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-logr/logr"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-io/flotilla/controlplane/apiserver"
)

//go:embed stages/*.yaml
var stageFiles embed.FS

const (
	// leaseSeconds is how long a node's lease holds; it is renewed every quarter of that.
	leaseSeconds = 120
	// podPlayers is how many pods are written at the same time.
	podPlayers  = 16
	nodePlayers = 4
)

// kubelets is the part of a member that stands for its machines.
type kubelets struct {
	member  *rest.Config
	name    string
	address string // of every node
	podCIDR string // of pods on nodes that have no range of their own
	port    int    // of every node's kubelet
}

// start lets the nodes live until the context ends.
func (k *kubelets) start(ctx context.Context) error {
	stages, err := loadStages()
	if err != nil {
		return err
	}
	started := make(chan struct{})
	config, err := k.config(stages, started)
	if err != nil {
		return fmt.Errorf("nodes: %w", err)
	}
	defer close(started)
	controller, err := controllers.NewController(config)
	if err != nil {
		return fmt.Errorf("nodes: %w", err)
	}
	log := logr.FromContextOrDiscard(ctx).WithName("nodes")
	ctx = kwoklog.NewContext(ctx, kwoklog.NewLogger(lines{log}, kwoklog.LevelWarn))
	if err := controller.Start(ctx); err != nil {
		return fmt.Errorf("nodes: %w", err)
	}
	return nil
}

func (k *kubelets) config(stages map[internalversion.StageResourceRef][]*internalversion.Stage, started <-chan struct{}) (controllers.Config, error) {
	cfg := rest.AddUserAgent(rest.CopyConfig(k.member), "kubelets")
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return podsAfter{next, started} })
	typed, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return controllers.Config{}, err
	}
	return controllers.Config{
		Clock:                     clock.RealClock{},
		TypedClient:               typed,
		RESTClient:                typed.Discovery().RESTClient(),
		ManageAllNodes:            true,
		CIDR:                      k.podCIDR,
		NodeIP:                    k.address,
		NodePort:                  k.port,
		LocalStages:               stages,
		PodPlayStageParallelism:   podPlayers,
		NodePlayStageParallelism:  nodePlayers,
		NodeLeaseDurationSeconds:  leaseSeconds,
		NodeLeaseParallelism:      nodePlayers,
		PodsOnNodeSyncParallelism: nodePlayers,
		// The same after a restart, so that the leases need not run out first.
		ID:      "kubelets-" + k.name,
		FuncMap: gotpl.FuncMap{"KubeletVersion": func() string { return apiserver.KubernetesVersion }},
	}, nil
}

// podsAfter holds requests for all pods back until the controller has started. It begins
// with pods and nodes in any order, and a pod that is there already would be looked at while
// what knows the nodes is being made.
type podsAfter struct {
	http.RoundTripper
	started <-chan struct{}
}

// RoundTrip implements http.RoundTripper.
func (p podsAfter) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Path == "/api/v1/pods" {
		select {
		case <-p.started:
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
	return p.RoundTripper.RoundTrip(req)
}

// loadStages reads what happens to which objects, by kind.
func loadStages() (map[internalversion.StageResourceRef][]*internalversion.Stage, error) {
	entries, err := stageFiles.ReadDir("stages")
	if err != nil {
		return nil, fmt.Errorf("stages: %w", err)
	}
	stages := map[internalversion.StageResourceRef][]*internalversion.Stage{}
	for _, entry := range entries {
		content, err := stageFiles.ReadFile("stages/" + entry.Name())
		if err != nil {
			return nil, fmt.Errorf("stages: %w", err)
		}
		list, err := parseStages(content)
		if err != nil {
			return nil, fmt.Errorf("stages/%s: %w", entry.Name(), err)
		}
		for _, stage := range list {
			stages[stage.Spec.ResourceRef] = append(stages[stage.Spec.ResourceRef], stage)
		}
	}
	return stages, nil
}

func parseStages(content []byte) ([]*internalversion.Stage, error) {
	var stages []*internalversion.Stage
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return stages, nil
		}
		if err != nil {
			return nil, err
		}
		var stage v1alpha1.Stage
		if err := yaml.UnmarshalStrict(document, &stage); err != nil {
			return nil, err
		}
		internal, err := internalversion.ConvertToInternalStage(&stage)
		if err != nil {
			return nil, fmt.Errorf("stage %s: %w", stage.Name, err)
		}
		stages = append(stages, internal)
	}
}

// lines hands what is written to it on to a log.
type lines struct{ log logr.Logger }

func (l lines) Write(text []byte) (int, error) {
	l.log.Info(strings.TrimSpace(string(text)))
	return len(text), nil
}
