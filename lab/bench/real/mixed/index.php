<?php
// A service of PHP: for each unit of work it hashes, sorts and writes a list.
$work = (int) $_GET["work"];
$sum = 0;
for ($k = 0; $k < $work; $k++) {
    $list = [];
    for ($i = 0; $i < 60; $i++) {
        $list["item " . ($i * 7919 + $k) % 997] = md5("$k $i");
    }
    asort($list);
    $sum += strlen(json_encode($list));
}
header("Content-Type: text/plain");
echo $sum > 0 ? "done $work\n" : "no\n";
