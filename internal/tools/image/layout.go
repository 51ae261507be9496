package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// object is a JSON object; encoding/json sorts its keys.
type object = map[string]any

// user is the ID of the user that runs the program, which no host has by default.
const user = 65532

const media = "application/vnd.oci.image."

// layout collects the blobs of an image layout.
type layout struct {
	at    time.Time
	blobs map[string][]byte // by the hexadecimal SHA-256 of the content
}

// add keeps a blob and returns its descriptor.
func (l *layout) add(kind string, content []byte) object {
	sum := fmt.Sprintf("%x", sha256.Sum256(content))
	if l.blobs == nil {
		l.blobs = map[string][]byte{}
	}
	l.blobs[sum] = content
	return object{"mediaType": media + kind, "digest": "sha256:" + sum, "size": len(content)}
}

// addJSON keeps v as a blob.
func (l *layout) addJSON(kind string, v object) (object, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", kind, err)
	}
	return l.add(kind, b), nil
}

// image adds the image of one architecture and returns its descriptor.
func (l *layout) image(program []byte, arch, version string) (object, error) {
	plain, err := l.tar([]tar.Header{
		{Name: "trimtab", Mode: 0o755, Size: int64(len(program))},
		{Name: "tmp/", Mode: 0o1777},
		{Name: "var/", Mode: 0o755},
		{Name: "var/lib/", Mode: 0o755},
		{Name: "var/lib/trimtab/", Mode: 0o700, Uid: user, Gid: user},
	}, [][]byte{program, nil, nil, nil, nil})
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(plain); err != nil {
		return nil, fmt.Errorf("compress layer: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("compress layer: %w", err)
	}
	config, err := l.addJSON("config.v1+json", object{
		"created": l.at.Format(time.RFC3339), "architecture": arch, "os": "linux",
		"config": object{
			"User": fmt.Sprintf("%d:%d", user, user), "WorkingDir": "/var/lib/trimtab",
			"Entrypoint": []string{"/trimtab"}, "Cmd": []string{"run", "--storage.path", "/var/lib/trimtab"},
			"ExposedPorts": object{"9600/tcp": object{}, "4317/tcp": object{}, "4318/tcp": object{}},
			"Volumes":      object{"/var/lib/trimtab": object{}},
			"Labels":       labels(version),
		},
		"rootfs":  object{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(plain))}},
		"history": []object{{"created": l.at.Format(time.RFC3339), "created_by": "internal/tools/image"}},
	})
	if err != nil {
		return nil, err
	}
	m, err := l.addJSON("manifest.v1+json", object{
		"schemaVersion": 2, "mediaType": media + "manifest.v1+json", "config": config,
		"layers": []object{l.add("layer.v1.tar+gzip", packed.Bytes())},
	})
	if err != nil {
		return nil, err
	}
	m["platform"] = object{"architecture": arch, "os": "linux"}
	return m, nil
}

func labels(version string) object {
	return object{
		"org.opencontainers.image.title": "trimtab", "org.opencontainers.image.version": version,
		"org.opencontainers.image.licenses": "Apache-2.0", "org.opencontainers.image.source": "https://github.com/trimtab/trimtab",
	}
}

// archive returns the layout as a tar file: an index of one entry, named by the
// version, which is the index of the architectures.
func (l *layout) archive(manifests []any, version string) ([]byte, error) {
	index, err := l.addJSON("index.v1+json", object{"schemaVersion": 2, "mediaType": media + "index.v1+json", "manifests": manifests})
	if err != nil {
		return nil, err
	}
	index["annotations"] = object{"org.opencontainers.image.ref.name": version, "io.containerd.image.name": "trimtab:" + version}
	top, err := json.Marshal(object{"schemaVersion": 2, "mediaType": media + "index.v1+json", "manifests": []any{index}})
	if err != nil {
		return nil, fmt.Errorf("encode index: %w", err)
	}
	files := []tar.Header{{Name: "oci-layout"}, {Name: "index.json"}, {Name: "blobs/", Mode: 0o755}, {Name: "blobs/sha256/", Mode: 0o755}}
	contents := [][]byte{[]byte(`{"imageLayoutVersion":"1.0.0"}`), top, nil, nil}
	for _, sum := range slices.Sorted(maps.Keys(l.blobs)) {
		files, contents = append(files, tar.Header{Name: "blobs/sha256/" + sum}), append(contents, l.blobs[sum])
	}
	for i := range files {
		files[i].Size = int64(len(contents[i]))
		files[i].Mode = cmp.Or(files[i].Mode, 0o644)
	}
	return l.tar(files, contents)
}

// tar packs files; a name that ends in "/" is a directory.
func (l *layout) tar(files []tar.Header, contents [][]byte) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := range files {
		files[i].ModTime, files[i].Format = l.at, tar.FormatUSTAR
		if err := w.WriteHeader(&files[i]); err != nil {
			return nil, fmt.Errorf("pack %s: %w", files[i].Name, err)
		}
		if _, err := w.Write(contents[i]); err != nil {
			return nil, fmt.Errorf("pack %s: %w", files[i].Name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("pack files: %w", err)
	}
	return b.Bytes(), nil
}
