package kubelet

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCommands(t *testing.T) {
	type outcome struct {
		Code     int
		Out, Err string
	}
	const unknownCommand = ": not found: the container is simulated and knows cat, echo, env, exit, false, hostname, sh and true\n"
	for name, test := range map[string]struct {
		command []string
		in      string
		want    outcome
	}{
		"nothing":                    {want: outcome{Code: 127}},
		"what is said":               {command: []string{"echo", "a", "b"}, want: outcome{Out: "a b\n"}},
		"what is read":               {command: []string{"cat"}, in: "x\ny", want: outcome{Out: "x\ny"}},
		"the pod's name":             {command: []string{"/bin/hostname"}, want: outcome{Out: "web\n"}},
		"the environment":            {command: []string{"env"}, want: outcome{Out: "HOSTNAME=web\nPATH=/bin\n"}},
		"a failure":                  {command: []string{"false"}, want: outcome{Code: 1}},
		"a code":                     {command: []string{"sh", "-c", "exit 7"}, want: outcome{Code: 7}},
		"a code that is none":        {command: []string{"exit", "x"}, want: outcome{Code: 2}},
		"a shell":                    {command: []string{"sh"}, in: "echo 1\n\nhostname\nexit 3\necho 2\n", want: outcome{Code: 3, Out: "1\nweb\n"}},
		"a program that there isn't": {command: []string{"/usr/bin/ls", "/"}, want: outcome{Code: 127, Err: "ls" + unknownCommand}},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			code := container{namespace: "shop", pod: "web", name: "main"}.run(test.command, strings.NewReader(test.in), &out, &errOut)
			if diff := cmp.Diff(test.want, outcome{Code: code, Out: out.String(), Err: errOut.String()}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
