package git

import (
	"bytes"
	"testing"
)

// FuzzPack passes arbitrary bytes to the reader of transfers.
func FuzzPack(f *testing.F) {
	f.Add([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x00"))
	f.Add([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01\x35x\x9c\xcbH\xcd\xc9\xc9\x07\x00\x06,\x02\x15"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		file, err := spool(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		p := &pack{file: file}
		defer p.close()
		_ = p.fill(bytes.NewReader(stream), Limits{Objects: 1000, Object: 1 << 16, Unpacked: 1 << 20}.withDefaults())
	})
}

// FuzzRefs passes arbitrary bytes to the reader of the list of refs.
func FuzzRefs(f *testing.F) {
	f.Add([]byte("001e# service=git-upload-pack\n0000"))
	f.Add([]byte("0000"))
	f.Fuzz(func(_ *testing.T, stream []byte) {
		_, _ = decodeRefs(bytes.NewReader(stream), 1<<16)
	})
}
