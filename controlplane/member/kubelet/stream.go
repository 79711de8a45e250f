package kubelet

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/apimachinery/pkg/util/httpstream/spdy"
	"k8s.io/apimachinery/pkg/util/remotecommand"
)

// arrival is how long a client may take to open what it asked for.
const arrival = 30 * time.Second

// departure is how long one may take to read what it was sent, before its streams are
// torn down: what it has not read by then is lost.
const departure = 10 * time.Second

// mostPorts bounds the connections to a pod's ports that one client has.
const mostPorts = 256

// stream gives a program the streams that a request asks for, and reports how it
// ended.
func stream(w http.ResponseWriter, req *http.Request, program func(in io.Reader, out, errOut io.Writer) int) {
	if _, err := httpstream.Handshake(req, w, []string{remotecommand.StreamProtocolV4Name}); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	opened := make(chan httpstream.Stream, 8)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, req, func(s httpstream.Stream, _ <-chan struct{}) error {
		select {
		case opened <- s:
			return nil
		default:
			return errors.New("too many streams")
		}
	})
	if conn == nil {
		return // the client has been answered why
	}
	defer func() { _ = conn.Close() }()
	streams, ok := await(req, conn, opened)
	if !ok {
		return
	}
	in, out, errOut := io.Reader(strings.NewReader("")), io.Discard, io.Discard
	if s := streams[corev1.StreamTypeStdin]; s != nil {
		in = s
	}
	if s := streams[corev1.StreamTypeStdout]; s != nil {
		out, errOut = s, s // with a terminal there is no other
	}
	if s := streams[corev1.StreamTypeStderr]; s != nil {
		errOut = s
	}
	code := program(in, out, errOut)
	_ = json.NewEncoder(streams[corev1.StreamTypeError]).Encode(ended(code))
	for _, kind := range []string{corev1.StreamTypeStdout, corev1.StreamTypeStderr, corev1.StreamTypeError} {
		if s := streams[kind]; s != nil {
			_ = s.Close()
		}
	}
	timeout := time.NewTimer(departure)
	defer timeout.Stop()
	select {
	case <-conn.CloseChan(): // the client has all of it
	case <-timeout.C:
	}
}

// await returns the streams that a request asks for, by type.
func await(req *http.Request, conn httpstream.Connection, opened <-chan httpstream.Stream) (map[string]httpstream.Stream, bool) {
	query := req.URL.Query()
	asked := func(name string) bool { return query.Get(name) == "1" || query.Get(name) == "true" }
	want := 1 // for how it ended
	for name, counts := range map[string]bool{"input": true, "output": true, "error": !asked("tty"), "tty": true} {
		if asked(name) && counts {
			want++
		}
	}
	out := map[string]httpstream.Stream{}
	timeout := time.NewTimer(arrival)
	defer timeout.Stop()
	for len(out) < want {
		select {
		case s := <-opened:
			out[s.Headers().Get(corev1.StreamType)] = s
		case <-conn.CloseChan():
			return nil, false
		case <-timeout.C:
			return nil, false
		}
	}
	return out, out[corev1.StreamTypeError] != nil
}

// ended says how a program ended.
func ended(code int) metav1.Status {
	if code == 0 {
		return metav1.Status{Status: metav1.StatusSuccess}
	}
	return metav1.Status{
		Status:  metav1.StatusFailure,
		Reason:  remotecommand.NonZeroExitCodeReason,
		Message: fmt.Sprintf("command terminated with non-zero exit code: %d", code),
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: remotecommand.ExitCodeCauseType, Message: strconv.Itoa(code)}}},
	}
}

// forward answers on the ports of a pod.
func forward(w http.ResponseWriter, req *http.Request) {
	if _, err := httpstream.Handshake(req, w, []string{"portforward.k8s.io"}); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	pod := req.PathValue("namespace") + "/" + req.PathValue("pod")
	places := make(chan struct{}, mostPorts)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, req, func(s httpstream.Stream, replied <-chan struct{}) error {
		if s.Headers().Get(corev1.StreamType) != corev1.StreamTypeData {
			return nil // nothing goes wrong that would be reported
		}
		select {
		case places <- struct{}{}:
		default:
			return errors.New("too many connections")
		}
		go func() {
			defer func() { <-places }()
			<-replied
			greet(s, pod)
		}()
		return nil
	})
	if conn == nil {
		return
	}
	defer func() { _ = conn.Close() }()
	select {
	case <-conn.CloseChan():
	case <-req.Context().Done():
	}
}

// greet answers one HTTP request.
func greet(s httpstream.Stream, pod string) {
	defer func() { _ = s.Close() }()
	req, err := http.ReadRequest(bufio.NewReader(s))
	if err != nil {
		return
	}
	body := fmt.Sprintf("port %s of pod %s: %s %s\n", s.Headers().Get(corev1.PortHeader), pod, req.Method, req.URL.Path)
	resp := &http.Response{
		StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Request: req, Close: true,
		Header: http.Header{"Content-Type": {"text/plain"}}, ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body)),
	}
	_ = resp.Write(s)
}
