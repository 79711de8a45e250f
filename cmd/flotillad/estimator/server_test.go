package estimator_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	estimatorapi "github.com/flotilla-io/flotilla/api/estimator"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotillad/estimator"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/reconciler/cluster/capacity"
	"github.com/flotilla-io/flotilla/reconciler/estimators"
)

// known answers with a number, and keeps what it was asked.
type known struct {
	number int32
	err    error
	fault  bool
	wait   chan struct{} // nil: answer at once

	mu    sync.Mutex
	asked []asked
	now   int
	most  int // questions at the same time
}

type asked struct {
	Cluster, Namespace string
	Need               *workv1alpha2.ReplicaRequirements
	Components         []workv1alpha2.Component
	Assumed            []estimate.Assumed
	Of                 workv1alpha2.ObjectReference
	Threshold          time.Duration
}

func (k *known) answer(q asked) (int32, error) {
	if k.fault {
		panic("a fault in a count")
	}
	k.mu.Lock()
	k.asked = append(k.asked, q)
	k.now++
	k.most = max(k.most, k.now)
	k.mu.Unlock()
	if k.wait != nil {
		<-k.wait
	}
	k.mu.Lock()
	k.now--
	k.mu.Unlock()
	return k.number, k.err
}

func (k *known) MaxReplicas(_ context.Context, cluster string, need *workv1alpha2.ReplicaRequirements, assumed []estimate.Assumed) (int32, error) {
	return k.answer(asked{Cluster: cluster, Need: need, Assumed: assumed})
}

func (k *known) MaxSets(_ context.Context, cluster, namespace string, components []workv1alpha2.Component, assumed []estimate.Assumed) (int32, error) {
	return k.answer(asked{Cluster: cluster, Namespace: namespace, Components: components, Assumed: assumed})
}

func (k *known) Unschedulable(_ context.Context, cluster string, of workv1alpha2.ObjectReference, threshold time.Duration) (int32, error) {
	return k.answer(asked{Cluster: cluster, Of: of, Threshold: threshold})
}

// serve serves until the test ends, and returns where.
func serve(t *testing.T, server *estimator.Server, files estimator.Files) string {
	t.Helper()
	secured, err := files.Credentials()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener, secured) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// raw passes messages as the bytes that they are.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = slices.Clone(data)
	return nil
}
func (raw) Name() string { return "proto" }

var _ encoding.Codec = raw{}

// send asks with bytes, as a client would whose messages are not ours.
func send(t *testing.T, address, method string, question []byte) ([]byte, error) {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{})))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var answer []byte
	err = conn.Invoke(t.Context(), "/github.com.karmada_io.karmada.pkg.estimator.service.Estimator/"+method, &question, &answer)
	return answer, err
}

func field(number protowire.Number, parts ...[]byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), slices.Concat(parts...))
}

func text(number protowire.Number, value string) []byte { return field(number, []byte(value)) }

func varint(number protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), value)
}

// TestAForeignClient asks with the bytes of Karmada's scheduler.
func TestAForeignClient(t *testing.T) {
	cpu := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("150m")}
	set := []workv1alpha2.Component{{Name: "a", Replicas: 2, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: cpu, PriorityClassName: "high"}}}
	component := slices.Concat(text(1, "a"), field(2, text(3, "high"), field(4, text(1, "cpu"), field(2, text(1, "150m")))), varint(3, 2))
	need := field(2, text(3, "shop"), field(5, text(1, "cpu"), field(2, text(1, "150m"))))
	running := field(3, text(1, "jobs"), field(2, component))
	requirements := &workv1alpha2.ReplicaRequirements{Namespace: "shop", ResourceRequest: cpu}
	deployment := field(2, text(1, "apps/v1"), text(2, "Deployment"), text(3, "shop"), text(4, "web"))
	for name, tc := range map[string]struct {
		method   string
		question []byte
		ignore   bool   // what is assumed
		answers  *known // nil: one that knows nothing
		want     asked
		answer   []byte
		code     codes.Code
	}{
		"replicas": {method: "MaxAvailableReplicas", question: slices.Concat(text(1, "m1"), need, running), answers: &known{number: 6},
			want: asked{Cluster: "m1", Need: requirements, Assumed: []estimate.Assumed{{Namespace: "jobs", Components: set}}}, answer: varint(1, 6)},
		"replicas, where assumptions are not heeded": {method: "MaxAvailableReplicas", question: slices.Concat(text(1, "m1"), need, running), ignore: true, answers: &known{number: 6},
			want: asked{Cluster: "m1", Need: requirements}, answer: varint(1, 6)},
		"none, which is not on the wire": {method: "MaxAvailableReplicas", question: text(1, "m1"), want: asked{Cluster: "m1"}},
		"no bound":                       {method: "MaxAvailableReplicas", question: text(1, "m1"), answers: &known{number: math.MaxInt32}, want: asked{Cluster: "m1"}, answer: varint(1, math.MaxInt32)},
		"sets": {method: "MaxAvailableComponentSets", question: slices.Concat(text(1, "m1"), field(2, component), text(3, "shop")), answers: &known{number: 2},
			want: asked{Cluster: "m1", Namespace: "shop", Components: set}, answer: varint(1, 2)},
		"unschedulable": {method: "GetUnschedulableReplicas", question: slices.Concat(text(1, "m1"), deployment, varint(3, 300_000_000_000)), answers: &known{number: 3},
			want: asked{Cluster: "m1", Of: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}, Threshold: 5 * time.Minute}, answer: varint(1, 3)},
		"unschedulable since a time to come": {method: "GetUnschedulableReplicas", question: slices.Concat(text(1, "m1"), deployment, varint(3, math.MaxUint64)), answers: &known{number: 3},
			want: asked{Cluster: "m1", Of: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}}, answer: varint(1, 3)},
		"another cluster":         {method: "MaxAvailableReplicas", question: text(1, "m2"), code: codes.InvalidArgument},
		"sets of another cluster": {method: "MaxAvailableComponentSets", question: text(1, "m2"), code: codes.InvalidArgument},
		"pods of another cluster": {method: "GetUnschedulableReplicas", question: slices.Concat(text(1, "m2"), deployment), code: codes.InvalidArgument},
		"no cluster":              {method: "MaxAvailableReplicas", code: codes.InvalidArgument},
		"no workload":             {method: "GetUnschedulableReplicas", question: text(1, "m1"), code: codes.InvalidArgument},
		"no message":              {method: "MaxAvailableReplicas", question: []byte("none of your business"), code: codes.Internal},
		"an absurd quantity":      {method: "MaxAvailableReplicas", question: slices.Concat(text(1, "m1"), field(2, field(5, text(1, "cpu"), field(2, text(1, "1e999999999"))))), code: codes.InvalidArgument},
		"too many components":     {method: "MaxAvailableComponentSets", question: slices.Concat(text(1, "m1"), slices.Repeat(field(2, component), 257)), code: codes.InvalidArgument},
		"too much that is assumed": {method: "MaxAvailableReplicas", question: slices.Concat(text(1, "m1"), field(3, text(1, "jobs"), slices.Repeat(field(2, text(1, "a")), 5001))),
			code: codes.InvalidArgument},
		"a message that is too large": {method: "MaxAvailableReplicas", question: text(1, strings.Repeat("m", 5<<20)), code: codes.ResourceExhausted},
		"a method that there is not":  {method: "Guess", code: codes.Unimplemented},
		"a cluster not known yet":     {method: "MaxAvailableReplicas", question: text(1, "m1"), answers: &known{err: fmt.Errorf("m1: %w", capacity.ErrUnknown)}, want: asked{Cluster: "m1"}, code: codes.Unavailable},
		"a need that makes no sense":  {method: "MaxAvailableReplicas", question: text(1, "m1"), answers: &known{err: errors.New("no sense")}, want: asked{Cluster: "m1"}, code: codes.InvalidArgument},
		"a fault of ours":             {method: "MaxAvailableReplicas", question: text(1, "m1"), answers: &known{fault: true}, code: codes.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.answers == nil {
				tc.answers = &known{}
			}
			address := serve(t, estimator.New(tc.answers, estimator.Options{Cluster: "m1", Assumed: !tc.ignore}), estimator.Files{})
			answer, err := send(t, address, tc.method, tc.question)
			if status.Code(err) != tc.code {
				t.Fatalf("error %v, want %s", err, tc.code)
			}
			if diff := cmp.Diff(tc.answer, answer); diff != "" && len(tc.answer)+len(answer) > 0 {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			var want []asked
			if !cmp.Equal(tc.want, asked{}) {
				want = []asked{tc.want}
			}
			if diff := cmp.Diff(want, tc.answers.asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOurClientAndOurServer: client and server authenticate each other by certificates, and refuse others.
func TestOurClientAndOurServer(t *testing.T) {
	fleet, strangers := newAuthority(t, "fleet"), newAuthority(t, "strangers")
	serverCert, serverKey := fleet.issue(t, "server")
	clientCert, clientKey := fleet.issue(t, "client")
	strangerCert, strangerKey := strangers.issue(t, "stranger")
	secured := estimator.Files{Cert: serverCert, Key: serverKey, ClientCA: fleet.ca()}
	for name, tc := range map[string]struct {
		server estimator.Files
		client estimators.Files
		err    string
	}{
		"both as it should be":                         {secured, estimators.Files{CA: fleet.ca(), Cert: clientCert, Key: clientKey}, ""},
		"a client without a certificate":               {secured, estimators.Files{CA: fleet.ca()}, "Unavailable"},
		"a client of strangers":                        {secured, estimators.Files{CA: fleet.ca(), Cert: strangerCert, Key: strangerKey}, "Unavailable"},
		"a client without TLS":                         {secured, estimators.Files{}, "Unavailable"},
		"a server of strangers":                        {estimator.Files{Cert: strangerCert, Key: strangerKey, ClientCA: fleet.ca()}, estimators.Files{CA: fleet.ca(), Cert: clientCert, Key: clientKey}, "unknown authority"},
		"a server that the client believes everything": {estimator.Files{Cert: strangerCert, Key: strangerKey, ClientCA: fleet.ca()}, estimators.Files{SkipVerify: true, Cert: clientCert, Key: clientKey}, ""},
		"a server that answers everybody":              {estimator.Files{Cert: serverCert, Key: serverKey, AnyClient: true}, estimators.Files{CA: fleet.ca()}, ""},
		"a server without TLS":                         {estimator.Files{}, estimators.Files{CA: fleet.ca(), Cert: clientCert, Key: clientKey}, "Unavailable"},
		"neither with TLS":                             {estimator.Files{}, estimators.Files{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.client.Check(); err != nil {
				t.Fatal(err)
			}
			e := asking(t, serve(t, estimator.New(&known{number: 6}, estimator.Options{Cluster: "m1"}), tc.server), tc.client)
			got, err := e.MaxReplicas(t.Context(), "m1", nil, nil)
			if tc.err == "" && (err != nil || got != 6) {
				t.Errorf("answer %d, %v, want 6", got, err)
			}
			if tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("answer %d, %v, want %s", got, err, tc.err)
			}
		})
	}
}

// asking returns what asks the estimator of m1, which is at an address of this machine.
func asking(t *testing.T, address string, files estimators.Files) *estimators.Estimators {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	e := estimators.New(fake.NewClientBuilder().WithObjects(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: "karmada-scheduler-estimator-m1"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeExternalName, ExternalName: "localhost", Ports: []corev1.ServicePort{{Port: 10352, TargetPort: intstr.FromInt(number)}},
		},
	}).Build(), estimators.Options{Files: files})
	e.Observe(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}})
	t.Cleanup(func() { e.Forget("m1") })
	return e
}

func TestFilesThatSecureNothing(t *testing.T) {
	fleet := newAuthority(t, "fleet")
	cert, key := fleet.issue(t, "server")
	for name, tc := range map[string]struct {
		files estimator.Files
		want  string
	}{
		"a certificate without a key":          {estimator.Files{Cert: cert}, "go together"},
		"clients that nobody signs":            {estimator.Files{Cert: cert, Key: key}, "--grpc-client-ca-file is missing"},
		"clients known, but no server":         {estimator.Files{ClientCA: fleet.ca()}, "name --grpc-auth-cert-file"},
		"a key in the place of the authority":  {estimator.Files{Cert: cert, Key: key, ClientCA: key}, "holds no certificate"},
		"files that there are not":             {estimator.Files{Cert: "/none", Key: "/none", ClientCA: fleet.ca()}, "no such file"},
		"an authority that there is not":       {estimator.Files{Cert: cert, Key: key, ClientCA: "/none"}, "no such file"},
		"a certificate in the place of a key ": {estimator.Files{Cert: cert, Key: cert, ClientCA: fleet.ca()}, "read the server's certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := tc.files.Credentials(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}

// TestQuestionsTakeTurns: no more are answered at the same time than may be, and each is counted.
func TestQuestionsTakeTurns(t *testing.T) {
	const questions, together = 20, 3
	answers := &known{number: 1, wait: make(chan struct{})}
	metrics := prometheus.NewRegistry()
	address := serve(t, estimator.New(answers, estimator.Options{Cluster: "m1", Parallelism: together, Metrics: metrics}), estimator.Files{})
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := estimatorapi.NewEstimatorClient(conn)
	if _, err := client.MaxAvailableReplicas(t.Context(), &estimatorapi.MaxAvailableReplicasRequest{Cluster: "m2"}); err == nil {
		t.Fatal("another cluster's question was answered")
	}
	var all sync.WaitGroup
	for range questions {
		all.Go(func() {
			if _, err := client.MaxAvailableReplicas(t.Context(), &estimatorapi.MaxAvailableReplicasRequest{Cluster: "m1"}); err != nil {
				t.Error(err)
			}
		})
	}
	for range questions {
		answers.wait <- struct{}{}
	}
	all.Wait()
	if answers.most > together {
		t.Errorf("%d were answered at the same time, want %d at most", answers.most, together)
	}
	const want = `# HELP karmada_scheduler_estimator_estimating_request_total Number of questions to this estimator, by what came of them and what they were about
# TYPE karmada_scheduler_estimator_estimating_request_total counter
karmada_scheduler_estimator_estimating_request_total{result="error",type="MaxAvailableReplicas"} 1
karmada_scheduler_estimator_estimating_request_total{result="success",type="MaxAvailableReplicas"} 20
`
	if err := testutil.GatherAndCompare(metrics, strings.NewReader(want), "karmada_scheduler_estimator_estimating_request_total"); err != nil {
		t.Error(err)
	}
}
