package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/util/exec"
)

// streams opens in a pod what kubectl opens, in both protocols that it speaks.
func (f *fleet) streams(t *testing.T) {
	admin := f.as(t, "")
	t.Run("logs", func(t *testing.T) { logs(t, admin) })
	for name, executor := range map[string]func(*rest.Config, *rest.Request) (remotecommand.Executor, error){
		"SPDY": func(config *rest.Config, req *rest.Request) (remotecommand.Executor, error) {
			return remotecommand.NewSPDYExecutor(config, http.MethodPost, req.URL())
		},
		"WebSocket": func(config *rest.Config, req *rest.Request) (remotecommand.Executor, error) {
			return remotecommand.NewWebSocketExecutor(config, http.MethodGet, req.URL().String())
		},
	} {
		t.Run("exec over "+name, func(t *testing.T) { command(t, admin, executor) })
	}
	for name, dialer := range map[string]func(*rest.Config, *rest.Request) (httpstream.Dialer, error){
		"SPDY": func(config *rest.Config, req *rest.Request) (httpstream.Dialer, error) {
			transport, upgrader, err := spdy.RoundTripperFor(config)
			return spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, req.URL()), err
		},
		"WebSocket": func(config *rest.Config, req *rest.Request) (httpstream.Dialer, error) {
			return portforward.NewSPDYOverWebsocketDialer(req.URL(), config)
		},
	} {
		t.Run("port-forward over "+name, func(t *testing.T) { forward(t, admin, dialer) })
	}
	t.Run("a user without the right to exec is refused by the member", func(t *testing.T) {
		req := sub(t, f.as(t, "alice"), "exec").VersionedParams(&corev1.PodExecOptions{Command: []string{"true"}, Stdout: true}, scheme.ParameterCodec)
		exec, err := remotecommand.NewSPDYExecutor(f.as(t, "alice"), http.MethodPost, req.URL())
		if err != nil {
			t.Fatal(err)
		}
		err = exec.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard})
		if err == nil || !strings.Contains(err.Error(), `User "alice" cannot create resource "pods/exec"`) {
			t.Errorf("exec = %v", err)
		}
	})
	t.Run("a user who may only read is refused by the hub", func(t *testing.T) {
		req := sub(t, f.as(t, "reader"), "exec").VersionedParams(&corev1.PodExecOptions{Command: []string{"true"}, Stdout: true}, scheme.ParameterCodec)
		exec, err := remotecommand.NewWebSocketExecutor(f.as(t, "reader"), http.MethodGet, req.URL().String())
		if err != nil {
			t.Fatal(err)
		}
		err = exec.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard})
		if err == nil || !strings.Contains(err.Error(), `User "reader" cannot create resource "clusters/proxy"`) {
			t.Errorf("exec = %v", err)
		}
	})
}

// sub is a request for a sub-resource of the pod.
func sub(t *testing.T, config *rest.Config, name string) *rest.Request {
	return clientOf(t, config).CoreV1().RESTClient().Post().Resource("pods").Namespace("shop").Name("web").SubResource(name)
}

// logs are read to their end, and followed until somebody has seen enough.
func logs(t *testing.T, admin *rest.Config) {
	pods := clientOf(t, admin).CoreV1().Pods("shop")
	all, err := pods.GetLogs("web", &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil || !strings.HasPrefix(string(all), "container main of pod shop/web started\n") {
		t.Errorf("logs = %q, %v", all, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	stream, err := pods.GetLogs("web", &corev1.PodLogOptions{Follow: true}).Stream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	lines := bufio.NewScanner(stream)
	for lines.Scan() && lines.Text() != "still here (1)" {
		continue
	}
	if lines.Err() != nil || lines.Text() != "still here (1)" {
		t.Errorf("followed to %q, %v", lines.Text(), lines.Err())
	}
}

// command runs some in the pod.
func command(t *testing.T, admin *rest.Config, executor func(*rest.Config, *rest.Request) (remotecommand.Executor, error)) {
	type outcome struct {
		Out, Err string
		Code     int
	}
	big := strings.Repeat("0123456789abcdef", 1<<14)
	for name, test := range map[string]struct {
		command []string
		in      string
		want    outcome
		times   int
	}{
		"what is sent comes back": {command: []string{"cat"}, in: big, want: outcome{Out: big}, times: 1},
		"exit codes come back":    {command: []string{"sh", "-c", "exit 7"}, want: outcome{Code: 7}, times: 30}, // each time
	} {
		once := func(t *testing.T) {
			t.Helper()
			req := sub(t, admin, "exec").VersionedParams(&corev1.PodExecOptions{
				Container: "main", Command: test.command, Stdin: true, Stdout: true, Stderr: true,
			}, scheme.ParameterCodec)
			with, err := executor(admin, req)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			var out, errOut bytes.Buffer
			err = with.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: strings.NewReader(test.in), Stdout: &out, Stderr: &errOut})
			got := outcome{Out: out.String(), Err: errOut.String()}
			if exit, ok := err.(exec.CodeExitError); ok { //nolint:errorlint // it is not wrapped
				got.Code, err = exit.Code, nil
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%.400s", diff)
			}
		}
		t.Run(name, func(t *testing.T) {
			for range test.times {
				once(t)
			}
		})
	}
}

// forward speaks to a port of the pod.
func forward(t *testing.T, admin *rest.Config, dialer func(*rest.Config, *rest.Request) (httpstream.Dialer, error)) {
	with, err := dialer(admin, sub(t, admin, "portforward"))
	if err != nil {
		t.Fatal(err)
	}
	stop, ready := make(chan struct{}), make(chan struct{})
	forwarder, err := portforward.NewOnAddresses(with, []string{"127.0.0.1"}, []string{"0:80"}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		t.Fatal(err)
	}
	local := &http.Client{Timeout: timeout, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := local.Get(fmt.Sprintf("http://127.0.0.1:%d/path", ports[0].Local)) //nolint:noctx // it has a timeout
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil || string(body) != "port 80 of pod shop/web: GET /path\n" {
		t.Errorf("%q, %v", body, err)
	}
	_ = resp.Body.Close()
	close(stop)
	if err := <-ended; err != nil {
		t.Errorf("forward: %v", err)
	}
}
